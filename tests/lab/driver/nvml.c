/* A stand-in for libnvidia-ml.so.1: what a tool asks NVML about its GPUs.
 *
 * Types and numbers are those of NVIDIA's nvml.h, declared here again because a
 * machine that runs the tests need not have it. What the calls below do at the
 * edges (short buffers, unknown names, wrong arguments) is what a 580.159.04
 * driver was seen to do.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
} nvmlReturn_t;

/* To callers a handle is opaque; here it is the GPU itself. */
typedef const struct gpu *nvmlDevice_t;

static const unsigned long long MIB = 1ULL << 20;

/* --- The library itself ----------------------------------------------------- */

static atomic_int users;

static nvmlReturn_t initialise(void)
{
    nvmlReturn_t result = (nvmlReturn_t)told("nvmlInit", NULL);
    if (result == NVML_SUCCESS)
        users++;
    return result;
}

EXPORT nvmlReturn_t nvmlInit(void)
{
    return initialise();
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return initialise();
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags; /* whether to accept a machine without GPUs: the stub always does */
    return initialise();
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    if (users == 0)
        return NVML_ERROR_UNINITIALIZED;
    users--;
    return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t code)
{
    static const char *const texts[] = {
        "Success",
        "Uninitialized",
        "Invalid Argument",
        "Not Supported",
        "Insufficient Permissions",
        "Already Initialized",
        "Not Found",
        "Insufficient Size",
        "Insufficient External Power",
        "Driver Not Loaded",
        "Timeout",
        "Interrupt Request Issue",
        "NVML Shared Library Not Found",
        "Function Not Found",
        "Corrupted infoROM",
        "GPU is lost",
        "GPU requires reset",
        "GPU access blocked by the operating system",
        "Driver/library version mismatch",
        "In use by another client",
        "Insufficient Memory",
        "No data",
        "vGPU ECC not supported",
        "Insufficient Resources",
        "Invalid Frequency",
        "Argument version mismatch",
        "Requested functionality has been deprecated",
        "System is not in ready state",
        "No supported GPUs were found",
        "Resource not in correct state to perform requested operation",
        "Reset type is not supported for given device",
    };
    unsigned index = (unsigned)code;
    return index < sizeof texts / sizeof *texts ? texts[index] : "Unknown Error";
}

/* --- The system ------------------------------------------------------------- */

/* Whether a call about no particular GPU goes through. */
static nvmlReturn_t enter(const char *call)
{
    if (users == 0)
        return NVML_ERROR_UNINITIALIZED;
    return (nvmlReturn_t)told(call, NULL);
}

static nvmlReturn_t give_text(const char *text, char *buffer, unsigned length)
{
    if (buffer == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return copy_text(text, buffer, length) ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    nvmlReturn_t result = enter("nvmlSystemGetDriverVersion");
    return result != NVML_SUCCESS ? result : give_text(config()->version, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    nvmlReturn_t result = enter("nvmlSystemGetNVMLVersion");
    if (result != NVML_SUCCESS)
        return result;
    char text[TEXT + 16];
    snprintf(text, sizeof text, "%d.%s", config()->cuda_major, config()->version);
    return give_text(text, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    nvmlReturn_t result = enter("nvmlSystemGetCudaDriverVersion");
    if (result == NVML_SUCCESS)
        *version = config()->cuda_major * 1000 + config()->cuda_minor * 10;
    return result;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    nvmlReturn_t result = enter("nvmlSystemGetProcessName");
    if (result != NVML_SUCCESS)
        return result;
    for (int g = 0; g < config()->gpu_count; g++) {
        const struct gpu *gpu = &config()->gpus[g];
        for (int p = 0; p < gpu->process_count; p++)
            if (gpu->processes[p].pid == pid)
                return give_text(gpu->processes[p].name, name, length);
    }
    return NVML_ERROR_NOT_FOUND;
}

/* --- Counting and reaching GPUs --------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    nvmlReturn_t result = enter("nvmlDeviceGetCount");
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = (unsigned)config()->gpu_count;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

/* Whether a call about a GPU goes through. */
static nvmlReturn_t reach(nvmlDevice_t device, const char *call)
{
    if (users == 0)
        return NVML_ERROR_UNINITIALIZED;
    bool known = false;
    for (int i = 0; i < config()->gpu_count; i++)
        known = known || device == &config()->gpus[i];
    if (!known)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device->lost)
        return NVML_ERROR_GPU_IS_LOST;
    return (nvmlReturn_t)told(call, device);
}

/* A GPU that is lost has no handle to give, either. */
static nvmlReturn_t give_handle(nvmlDevice_t gpu, const char *call, nvmlDevice_t *device)
{
    nvmlReturn_t result = reach(gpu, call);
    if (result == NVML_SUCCESS)
        *device = gpu;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    if (users == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (index >= (unsigned)config()->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_handle(&config()->gpus[index], "nvmlDeviceGetHandleByIndex", device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* Unlike CUDA_VISIBLE_DEVICES, NVML wants the whole UUID, letter by letter. */
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    if (users == 0)
        return NVML_ERROR_UNINITIALIZED;
    for (int i = 0; i < config()->gpu_count; i++)
        if (strcmp(config()->gpus[i].uuid, uuid) == 0)
            return give_handle(&config()->gpus[i], "nvmlDeviceGetHandleByUUID", device);
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    if (users == 0)
        return NVML_ERROR_UNINITIALIZED;
    unsigned domain, bus, slot;
    if (!parse_pci(bus_id, &domain, &bus, &slot))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < config()->gpu_count; i++) {
        const struct gpu *gpu = &config()->gpus[i];
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == slot)
            return give_handle(gpu, "nvmlDeviceGetHandleByPciBusId", device);
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

/* --- What a GPU is ---------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetIndex");
    if (result == NVML_SUCCESS)
        *index = (unsigned)device->index;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *number)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetMinorNumber");
    if (result == NVML_SUCCESS)
        *number = (unsigned)device->index;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetName");
    return result != NVML_SUCCESS ? result : give_text(device->name, name, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetUUID");
    return result != NVML_SUCCESS ? result : give_text(device->uuid, uuid, length);
}

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} nvmlPciInfo_t;

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetPciInfo");
    if (result != NVML_SUCCESS)
        return result;
    *pci = (nvmlPciInfo_t){
        .domain = device->pci_domain,
        .bus = device->pci_bus,
        .device = device->pci_device,
        .device_id = 0x20B010DE, /* an A100, by NVIDIA */
        .subsystem_id = 0x134F10DE,
    };
    char text[TEXT];
    format_pci(device, 4, text);
    copy_text(text, pci->bus_id_legacy, sizeof pci->bus_id_legacy);
    format_pci(device, 8, text);
    copy_text(text, pci->bus_id, sizeof pci->bus_id);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetCudaComputeCapability");
    if (result == NVML_SUCCESS) {
        *major = device->capability_major;
        *minor = device->capability_minor;
    }
    return result;
}

/* NVML counts the generations from Kepler (2) to Blackwell (10). */
static unsigned architecture(int major, int minor)
{
    switch (major) {
    case 3:
        return 2;
    case 5:
        return 3;
    case 6:
        return 4;
    case 7:
        return minor < 5 ? 5 : 6;
    case 8:
        return minor < 9 ? 7 : 8;
    case 9:
        return 9;
    case 10:
    case 11:
    case 12:
        return 10;
    default:
        return 0xffffffff;
    }
}

EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *number)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetArchitecture");
    if (result == NVML_SUCCESS)
        *number = architecture(device->capability_major, device->capability_minor);
    return result;
}

/* --- How it is set up ------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, int *mode)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetComputeMode");
    if (result == NVML_SUCCESS)
        *mode = device->compute_mode;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *on)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetPersistenceMode");
    if (result == NVML_SUCCESS)
        *on = 1;
    return result;
}

/* What is set now and what the next reboot brings are always the same here. */
static nvmlReturn_t give_feature(enum feature feature, unsigned *now, unsigned *pending)
{
    if (feature == FEATURE_UNSUPPORTED)
        return NVML_ERROR_NOT_SUPPORTED;
    *now = *pending = feature == FEATURE_ON;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *now, unsigned *pending)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetMigMode");
    return result != NVML_SUCCESS ? result : give_feature(device->mig, now, pending);
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *now, unsigned *pending)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetEccMode");
    return result != NVML_SUCCESS ? result : give_feature(device->ecc, now, pending);
}

/* --- How it fares ----------------------------------------------------------- */

enum { CORRECTED = 0, UNCORRECTED = 1 };

static nvmlReturn_t give_errors(nvmlDevice_t device, unsigned type, unsigned long long *count)
{
    if (type != CORRECTED && type != UNCORRECTED)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device->ecc != FEATURE_ON)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = type == CORRECTED ? device->ecc_corrected : device->ecc_uncorrected;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type,
                                                unsigned period, unsigned long long *count)
{
    (void)period; /* since the last reboot or ever: the same number here */
    nvmlReturn_t result = reach(device, "nvmlDeviceGetTotalEccErrors");
    return result != NVML_SUCCESS ? result : give_errors(device, type, count);
}

enum { DEVICE_MEMORY = 2, ON_CHIP_MEMORY = 7, LOCATION_COUNT = 8 };

EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned type,
                                                    unsigned period, unsigned location,
                                                    unsigned long long *count)
{
    (void)period;
    nvmlReturn_t result = reach(device, "nvmlDeviceGetMemoryErrorCounter");
    if (result != NVML_SUCCESS)
        return result;
    if (location >= LOCATION_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (location != DEVICE_MEMORY && location != ON_CHIP_MEMORY)
        return NVML_ERROR_NOT_SUPPORTED;
    result = give_errors(device, type, count);
    if (result == NVML_SUCCESS && location == ON_CHIP_MEMORY)
        *count = 0; /* all of them are counted for the device memory */
    return result;
}

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

/* A caller writes the size and the version of the structure that it passes. */
#define VERSION_OF(type, version) ((unsigned)sizeof(type) | (version) << 24)

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetMemoryInfo");
    if (result == NVML_SUCCESS) {
        memory->total = device->memory_total_mib * MIB;
        memory->used = device->memory_used_mib * MIB;
        memory->free = memory->total - memory->used;
    }
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_t plain;
    nvmlReturn_t result = nvmlDeviceGetMemoryInfo(device, &plain);
    if (result != NVML_SUCCESS)
        return result;
    if (memory->version != VERSION_OF(nvmlMemory_v2_t, 2u))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return NVML_SUCCESS;
}

/* An idle GPU; no scenario depends on these yet. */
enum { TEMPERATURE_C = 34, POWER_MW = 52000, PCIE_GENERATION = 4, PCIE_WIDTH = 16 };

/* TensorFlow reads the bus's speed, and complains on every look at a GPU if it cannot. */
EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetCurrPcieLinkGeneration");
    if (result == NVML_SUCCESS)
        *generation = PCIE_GENERATION;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *lanes)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetCurrPcieLinkWidth");
    if (result == NVML_SUCCESS)
        *lanes = PCIE_WIDTH;
    return result;
}

typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *percent)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetUtilizationRates");
    if (result == NVML_SUCCESS)
        *percent = (nvmlUtilization_t){0, 0};
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor,
                                             unsigned *celsius)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetTemperature");
    if (result != NVML_SUCCESS)
        return result;
    if (sensor != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *celsius = TEMPERATURE_C;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetPowerUsage");
    if (result == NVML_SUCCESS)
        *milliwatts = POWER_MW;
    return result;
}

/* --- Who uses it ------------------------------------------------------------ */

typedef struct {
    unsigned pid;
    unsigned long long memory;
} nvmlProcessInfo_v1_t;

/* The second and the third version of the calls share this one. */
typedef struct {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} nvmlProcessInfo_t;

static const unsigned long long MEMORY_NOT_AVAILABLE = ~0ULL;
static const unsigned NO_INSTANCE = 0xffffffff;

/* Writes the processes of one kind into a caller's array, as far as its
 * elements go; tells how many there are when it is too short. */
static nvmlReturn_t give_processes(nvmlDevice_t device, bool graphics, unsigned *count,
                                   void *array, size_t element)
{
    unsigned found = 0;
    for (int i = 0; i < device->process_count; i++)
        found += device->processes[i].graphics == graphics;
    unsigned room = *count;
    *count = found;
    if (found == 0)
        return NVML_SUCCESS;
    if (room < found)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (array == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;

    char *next = array;
    for (int i = 0; i < device->process_count; i++) {
        const struct process *process = &device->processes[i];
        if (process->graphics != graphics)
            continue;
        nvmlProcessInfo_t info = {
            .pid = process->pid,
            .memory = process->memory_known ? process->memory_mib * MIB : MEMORY_NOT_AVAILABLE,
            .gpu_instance = NO_INSTANCE,
            .compute_instance = NO_INSTANCE,
        };
        memcpy(next, &info, element); /* the old structure is the new one's beginning */
        next += element;
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t give_compute(nvmlDevice_t device, unsigned *count, void *array, size_t element)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetComputeRunningProcesses");
    return result != NVML_SUCCESS ? result : give_processes(device, false, count, array, element);
}

static nvmlReturn_t give_graphics(nvmlDevice_t device, unsigned *count, void *array,
                                  size_t element)
{
    nvmlReturn_t result = reach(device, "nvmlDeviceGetGraphicsRunningProcesses");
    return result != NVML_SUCCESS ? result : give_processes(device, true, count, array, element);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                         nvmlProcessInfo_v1_t *array)
{
    return give_compute(device, count, array, sizeof *array);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *array)
{
    return give_compute(device, count, array, sizeof *array);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *array)
{
    return give_compute(device, count, array, sizeof *array);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                          nvmlProcessInfo_v1_t *array)
{
    return give_graphics(device, count, array, sizeof *array);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                             nvmlProcessInfo_t *array)
{
    return give_graphics(device, count, array, sizeof *array);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                             nvmlProcessInfo_t *array)
{
    return give_graphics(device, count, array, sizeof *array);
}

/* --- All other calls: there to be found, and to say no ---------------------- */

#define CALL(name)                                                                               \
    EXPORT nvmlReturn_t name(void)                                                               \
    {                                                                                            \
        return NVML_ERROR_NOT_SUPPORTED;                                                         \
    }
#include "nvml_unserved.inc"
