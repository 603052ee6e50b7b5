/* What the stub driver pretends to be: one machine, read from a text file.
 *
 * The environment variable WHYGPU_STUB_DRIVER names the file; without it the
 * machine has one healthy GPU. The file has `key = value` lines, about the
 * driver first and then about each GPU, under one [gpu] line per GPU. A line
 * that starts with # is a comment. Every key may be left out.
 *
 *     # What NVML says of itself, and the newest CUDA that the driver runs.
 *     version = 580.65.06
 *     cuda = 13.0
 *     # This call never returns; that one returns 803. Any served call will do.
 *     hang = nvmlInit
 *     cuInit = 803
 *
 *     [gpu]
 *     name = NVIDIA A100-SXM4-40GB
 *     uuid = GPU-57470000-7768-4179-8067-707500000000
 *     pci_bus_id = 0000:01:00.0
 *     compute_capability = 8.0
 *     memory_total_mib = 40960
 *     memory_used_mib = 4
 *     # default, exclusive_process or prohibited
 *     compute_mode = default
 *     # on, off or unsupported
 *     mig = off
 *     ecc = on
 *     ecc_corrected = 0
 *     ecc_uncorrected = 0
 *     # yes: it has fallen off the bus
 *     lost = no
 *     # pid:name:MiB, one line each; "-" for MiB that the driver does not know
 *     process = 4242:python:512
 *     graphics_process = 17:Xorg:80
 *     # This call about this GPU returns 3.
 *     nvmlDeviceGetMemoryInfo = 3
 *
 * A call is named without its version suffix: `nvmlInit` is nvmlInit_v2, too.
 * A file that does not parse ends the process, with the line on stderr: a
 * mistake in a test must not pass for a healthy machine.
 */
#ifndef WHYGPU_STUB_CONFIG_H
#define WHYGPU_STUB_CONFIG_H

#include <stdbool.h>

/* The libraries are built with hidden symbols, or the helpers that both contain
 * would be taken from whichever was loaded first. */
#define EXPORT __attribute__((visibility("default")))

enum {
    MAX_GPUS = 16,
    MAX_PROCESSES = 16,
    MAX_ANSWERS = 16,
    TEXT = 96,
};

enum feature { FEATURE_UNSUPPORTED, FEATURE_OFF, FEATURE_ON };

/* The return code that the file wants from a call. */
struct answer {
    char call[TEXT];
    int code;
};

struct answers {
    struct answer list[MAX_ANSWERS];
    int count;
};

struct process {
    unsigned pid;
    char name[TEXT];
    bool graphics;
    bool memory_known;
    unsigned long long memory_mib;
};

struct gpu {
    int index;
    char name[TEXT];
    char uuid[TEXT];
    unsigned pci_domain, pci_bus, pci_device;
    int capability_major, capability_minor;
    unsigned long long memory_total_mib, memory_used_mib;
    int compute_mode; /* both libraries number the modes alike */
    enum feature mig, ecc;
    unsigned long long ecc_corrected, ecc_uncorrected;
    bool lost;
    struct process processes[MAX_PROCESSES];
    int process_count;
    struct answers answers;
};

struct config {
    char version[TEXT];
    int cuda_major, cuda_minor;
    char hang[TEXT];
    struct answers answers;
    struct gpu gpus[MAX_GPUS];
    int gpu_count;
};

/* The configuration; the first call reads the file. */
const struct config *config(void);

/* What the file wants from this call: its return code, 0 for "answer as a
 * healthy driver does". Does not return from the call that is to hang. gpu is
 * the one asked about, or NULL. */
int told(const char *call, const struct gpu *gpu);

/* Reads [domain:]bus:device[.function]; false when the text is none. */
bool parse_pci(const char *text, unsigned *domain, unsigned *bus, unsigned *device);

/* Writes domain:bus:device.function, the domain in so many digits. */
void format_pci(const struct gpu *gpu, int domain_digits, char text[TEXT]);

/* Copies text with its end into a caller's buffer; false when it is too short. */
bool copy_text(const char *text, char *buffer, unsigned length);

#endif
