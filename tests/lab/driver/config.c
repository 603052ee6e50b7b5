/* Reads the stub driver's configuration; config.h describes the file. */
#include "config.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_BAD_FILE = 78 }; /* EX_CONFIG of sysexits.h */

static struct config machine;

/* Where the reader is, for its error messages. */
static const char *file_name;
static int line_number;

static _Noreturn void refuse(const char *what, const char *text)
{
    fprintf(stderr, "stub driver: %s:%d: %s: %s\n", file_name, line_number, what, text);
    _exit(EXIT_BAD_FILE);
}

bool copy_text(const char *text, char *buffer, unsigned length)
{
    size_t size = strlen(text) + 1;
    if (size > length)
        return false;
    memcpy(buffer, text, size);
    return true;
}

static void set_text(char *field, const char *value)
{
    if (!copy_text(value, field, TEXT))
        refuse("too long", value);
}

static long long number(const char *value)
{
    char *end;
    long long result = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || result < 0)
        refuse("not a number", value);
    return result;
}

static void set_version(int *major, int *minor, const char *value)
{
    char rest;
    if (sscanf(value, "%d.%d%c", major, minor, &rest) != 2)
        refuse("not MAJOR.MINOR", value);
}

/* The position of value among the words of a NULL-ended list. */
static int choice(const char *const *words, const char *value)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], value) == 0)
            return i;
    refuse("not one of the known words", value);
}

static enum feature feature(const char *value)
{
    static const char *const words[] = {"unsupported", "off", "on", NULL};
    return (enum feature)choice(words, value);
}

static int compute_mode(const char *value)
{
    /* The second of NVIDIA's numbers is the withdrawn exclusive_thread. */
    static const char *const words[] = {
        "default", "exclusive_thread", "prohibited", "exclusive_process", NULL,
    };
    return choice(words, value);
}

static bool yes(const char *value)
{
    static const char *const words[] = {"no", "yes", NULL};
    return choice(words, value) == 1;
}

bool parse_pci(const char *text, unsigned *domain, unsigned *bus, unsigned *device)
{
    if (sscanf(text, "%x:%x:%x", domain, bus, device) == 3)
        return true;
    *domain = 0;
    return sscanf(text, "%x:%x", bus, device) == 2;
}

void format_pci(const struct gpu *gpu, int domain_digits, char text[TEXT])
{
    snprintf(text, TEXT, "%0*X:%02X:%02X.0", domain_digits, gpu->pci_domain, gpu->pci_bus,
             gpu->pci_device);
}

static void add_answer(struct answers *answers, const char *call, const char *value)
{
    if (answers->count == MAX_ANSWERS)
        refuse("too many return codes", call);
    struct answer *answer = &answers->list[answers->count++];
    set_text(answer->call, call);
    answer->code = (int)number(value);
}

static void add_process(struct gpu *gpu, const char *value, bool graphics)
{
    if (gpu->process_count == MAX_PROCESSES)
        refuse("too many processes", value);
    struct process *process = &gpu->processes[gpu->process_count++];

    /* A process name may hold colons, so the ends are cut off first. */
    char text[TEXT];
    set_text(text, value);
    char *first = strchr(text, ':'), *last = strrchr(text, ':');
    if (first == last)
        refuse("not pid:name:MiB", value);
    *first = *last = '\0';

    process->pid = (unsigned)number(text);
    set_text(process->name, first + 1);
    process->graphics = graphics;
    process->memory_known = strcmp(last + 1, "-") != 0;
    process->memory_mib = process->memory_known ? (unsigned long long)number(last + 1) : 0;
}

static struct gpu *add_gpu(void)
{
    if (machine.gpu_count == MAX_GPUS)
        refuse("too many GPUs", "[gpu]");
    int index = machine.gpu_count++;
    struct gpu *gpu = &machine.gpus[index];
    *gpu = (struct gpu){
        .index = index,
        .name = "NVIDIA A100-SXM4-40GB",
        .pci_bus = (unsigned)index + 1,
        .capability_major = 8,
        .memory_total_mib = 40960,
        .memory_used_mib = 4,
        .mig = FEATURE_OFF,
        .ecc = FEATURE_ON,
    };
    snprintf(gpu->uuid, TEXT, "GPU-5747%04x-7768-4179-8067-707500000000", (unsigned)index);
    return gpu;
}

/* cuInit, nvmlInit: a key that is the name of a driver call. */
static bool is_call(const char *key)
{
    return (strncmp(key, "cu", 2) == 0 && isupper((unsigned char)key[2])) ||
           (strncmp(key, "nvml", 4) == 0 && isupper((unsigned char)key[4]));
}

static void set_driver(const char *key, const char *value)
{
    if (strcmp(key, "version") == 0)
        set_text(machine.version, value);
    else if (strcmp(key, "cuda") == 0)
        set_version(&machine.cuda_major, &machine.cuda_minor, value);
    else if (strcmp(key, "hang") == 0)
        set_text(machine.hang, value);
    else if (is_call(key))
        add_answer(&machine.answers, key, value);
    else
        refuse("unknown key of the driver", key);
}

static void set_gpu(struct gpu *gpu, const char *key, const char *value)
{
    if (strcmp(key, "name") == 0)
        set_text(gpu->name, value);
    else if (strcmp(key, "uuid") == 0) {
        if (strncmp(value, "GPU-", 4) != 0)
            refuse("not a UUID that starts with GPU-", value);
        set_text(gpu->uuid, value);
    } else if (strcmp(key, "pci_bus_id") == 0) {
        if (!parse_pci(value, &gpu->pci_domain, &gpu->pci_bus, &gpu->pci_device))
            refuse("not a PCI bus id", value);
    } else if (strcmp(key, "compute_capability") == 0)
        set_version(&gpu->capability_major, &gpu->capability_minor, value);
    else if (strcmp(key, "memory_total_mib") == 0)
        gpu->memory_total_mib = (unsigned long long)number(value);
    else if (strcmp(key, "memory_used_mib") == 0)
        gpu->memory_used_mib = (unsigned long long)number(value);
    else if (strcmp(key, "compute_mode") == 0)
        gpu->compute_mode = compute_mode(value);
    else if (strcmp(key, "mig") == 0)
        gpu->mig = feature(value);
    else if (strcmp(key, "ecc") == 0)
        gpu->ecc = feature(value);
    else if (strcmp(key, "ecc_corrected") == 0)
        gpu->ecc_corrected = (unsigned long long)number(value);
    else if (strcmp(key, "ecc_uncorrected") == 0)
        gpu->ecc_uncorrected = (unsigned long long)number(value);
    else if (strcmp(key, "lost") == 0)
        gpu->lost = yes(value);
    else if (strcmp(key, "process") == 0)
        add_process(gpu, value, false);
    else if (strcmp(key, "graphics_process") == 0)
        add_process(gpu, value, true);
    else if (is_call(key))
        add_answer(&gpu->answers, key, value);
    else
        refuse("unknown key of a GPU", key);
}

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

static void read_line(char *line, struct gpu **gpu)
{
    char *text = trim(line);
    if (*text == '\0' || *text == '#')
        return;
    if (strcmp(text, "[gpu]") == 0) {
        *gpu = add_gpu();
        return;
    }
    char *equals = strchr(text, '=');
    if (equals == NULL)
        refuse("neither key = value nor [gpu]", text);
    *equals = '\0';
    char *key = trim(text), *value = trim(equals + 1);
    if (*gpu == NULL)
        set_driver(key, value);
    else
        set_gpu(*gpu, key, value);
}

static void read_machine(void)
{
    set_text(machine.version, "580.65.06");
    machine.cuda_major = 13;

    file_name = getenv("WHYGPU_STUB_DRIVER");
    if (file_name == NULL) {
        add_gpu();
        return;
    }
    FILE *file = fopen(file_name, "re");
    if (file == NULL)
        refuse("cannot be opened", "WHYGPU_STUB_DRIVER");
    struct gpu *gpu = NULL;
    char line[1024];
    while (fgets(line, sizeof line, file) != NULL) {
        line_number++;
        read_line(line, &gpu);
    }
    fclose(file);
}

const struct config *config(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_machine);
    return &machine;
}

static int find_answer(const struct answers *answers, const char *call)
{
    for (int i = 0; i < answers->count; i++)
        if (strcmp(answers->list[i].call, call) == 0)
            return answers->list[i].code;
    return 0;
}

int told(const char *call, const struct gpu *gpu)
{
    if (strcmp(config()->hang, call) == 0)
        for (;;)
            pause();
    int code = gpu != NULL ? find_answer(&gpu->answers, call) : 0;
    return code != 0 ? code : find_answer(&config()->answers, call);
}
