/* A stand-in for libcuda.so.1: enough for a framework to list its GPUs.
 *
 * Types and numbers are those of NVIDIA's cuda.h, declared here again because a
 * machine that runs the tests need not have it. What the calls below do at the
 * edges (lists in CUDA_VISIBLE_DEVICES, look-ups, wrong arguments) is what a
 * 580.159.04 driver was seen to do.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef int CUdevice;

typedef struct {
    unsigned char bytes[16];
} CUuuid;

typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_SUPPORTED = 801,
} CUresult;

/* --- The GPUs that CUDA_VISIBLE_DEVICES leaves ------------------------------ */

static pthread_mutex_t initialising = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool initialised;
static const struct gpu *visible[MAX_GPUS];
static int visible_count;

/* "GPU-" and the first digits of exactly one UUID, in either case. */
static const struct gpu *gpu_by_uuid(const char *entry)
{
    const char *digits = entry + strlen("GPU-");
    size_t length = strcspn(digits, ",");
    const struct gpu *match = NULL;
    for (int i = 0; i < config()->gpu_count && length > 0; i++) {
        const char *uuid = config()->gpus[i].uuid + strlen("GPU-");
        size_t compared = length < strlen(uuid) ? length : strlen(uuid);
        if (strncasecmp(uuid, digits, compared) != 0)
            continue;
        if (match != NULL)
            return NULL;
        match = &config()->gpus[i];
    }
    return match;
}

/* A leading number is enough: the driver takes "0junk" for 0. */
static const struct gpu *gpu_by_index(const char *entry)
{
    char *end;
    long index = strtol(entry, &end, 10);
    if (end == entry || index < 0 || index >= config()->gpu_count)
        return NULL;
    return &config()->gpus[index];
}

static bool is_uuid(const char *entry)
{
    return strncmp(entry, "GPU-", strlen("GPU-")) == 0;
}

/* The list counts up to its first entry that names no GPU, or that names it
 * otherwise (by index, by UUID) than the first entry did. */
static CUresult find_visible(void)
{
    visible_count = 0;
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    if (list == NULL) {
        for (int i = 0; i < config()->gpu_count; i++)
            visible[visible_count++] = &config()->gpus[i];
        return visible_count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
    }
    bool by_uuid = is_uuid(list);
    for (const char *entry = list; entry != NULL;) {
        if (is_uuid(entry) != by_uuid)
            break;
        const struct gpu *gpu = by_uuid ? gpu_by_uuid(entry) : gpu_by_index(entry);
        if (gpu == NULL)
            break;
        for (int i = 0; i < visible_count; i++)
            if (visible[i] == gpu)
                return CUDA_ERROR_INVALID_DEVICE;
        visible[visible_count++] = gpu;
        entry = strchr(entry, ',');
        if (entry != NULL)
            entry++;
    }
    return visible_count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* A failed attempt is forgotten, a successful one is kept: a program may set
 * CUDA_VISIBLE_DEVICES until then, and in vain afterwards. */
static CUresult initialise(void)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&initialising);
    if (!initialised) {
        result = find_visible();
        initialised = result == CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&initialising);
    return result;
}

/* --- Calls without a GPU ---------------------------------------------------- */

EXPORT CUresult cuInit(unsigned flags)
{
    CUresult result = (CUresult)told("cuInit", NULL);
    if (result != CUDA_SUCCESS)
        return result;
    return flags == 0 ? initialise() : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = config()->cuda_major * 1000 + config()->cuda_minor * 10;
    return (CUresult)told("cuDriverGetVersion", NULL);
}

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
     "API call is not supported in the installed CUDA driver"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "device doesn't have valid Grid license"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "shared object initialization failed"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "forward compatibility was attempted on non supported HW"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED",
     "MPS client failed to connect to the MPS control daemon or the MPS server"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

enum { ERROR_COUNT = sizeof errors / sizeof *errors };

EXPORT CUresult cuGetErrorName(int code, const char **name)
{
    for (int i = 0; i < ERROR_COUNT; i++)
        if (errors[i].code == code) {
            *name = errors[i].name;
            return CUDA_SUCCESS;
        }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(int code, const char **text)
{
    for (int i = 0; i < ERROR_COUNT; i++)
        if (errors[i].code == code) {
            *text = errors[i].text;
            return CUDA_SUCCESS;
        }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

/* --- Counting and reaching GPUs --------------------------------------------- */

EXPORT CUresult cuDeviceGetCount(int *count)
{
    if (!initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = (CUresult)told("cuDeviceGetCount", NULL);
    if (result == CUDA_SUCCESS)
        *count = visible_count;
    return result;
}

/* The GPU behind a device number, unless the call is to fail. */
static CUresult reach(CUdevice device, const char *call, const struct gpu **gpu)
{
    if (!initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (device < 0 || device >= visible_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *gpu = visible[device];
    return (CUresult)told(call, *gpu);
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    const struct gpu *gpu;
    CUresult result = reach(ordinal, "cuDeviceGet", &gpu);
    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return result;
}

EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus_id)
{
    unsigned domain, bus, slot;
    if (!initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!parse_pci(bus_id, &domain, &bus, &slot))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < visible_count; i++)
        if (visible[i]->pci_domain == domain && visible[i]->pci_bus == bus &&
            visible[i]->pci_device == slot)
            return cuDeviceGet(device, i);
    return CUDA_ERROR_INVALID_DEVICE;
}

/* --- What a GPU is ---------------------------------------------------------- */

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    const struct gpu *gpu;
    CUresult result = reach(device, "cuDeviceGetName", &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    strncpy(name, gpu->name, (size_t)length - 1);
    name[length - 1] = '\0';
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const struct gpu *gpu;
    CUresult result = reach(device, "cuDeviceGetUuid", &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    const char *text = gpu->uuid + strlen("GPU-");
    for (int i = 0; i < 16; i++) {
        char digits[3] = {0};
        for (int half = 0; half < 2 && *text != '\0'; text++)
            if (*text != '-')
                digits[half++] = *text;
        uuid->bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return CUDA_SUCCESS;
}

/* The second version differs on MIG slices only, which the stub has none of. */
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

EXPORT CUresult cuDeviceGetPCIBusId(char *bus_id, int length, CUdevice device)
{
    const struct gpu *gpu;
    CUresult result = reach(device, "cuDeviceGetPCIBusId", &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    char text[TEXT];
    format_pci(gpu, 4, text);
    if (length <= 0 || !copy_text(text, bus_id, (unsigned)length))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    const struct gpu *gpu;
    CUresult result = reach(device, "cuDeviceTotalMem", &gpu);
    if (result == CUDA_SUCCESS)
        *bytes = (size_t)gpu->memory_total_mib << 20;
    return result;
}

/* From the time before 64-bit sizes. */
EXPORT CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
    size_t all = 0;
    CUresult result = cuDeviceTotalMem_v2(&all, device);
    if (result == CUDA_SUCCESS)
        *bytes = all < UINT32_MAX ? (unsigned)all : UINT32_MAX;
    return result;
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    const struct gpu *gpu;
    CUresult result = reach(device, "cuDeviceComputeCapability", &gpu);
    if (result == CUDA_SUCCESS) {
        *major = gpu->capability_major;
        *minor = gpu->capability_minor;
    }
    return result;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    const struct gpu *gpu;
    CUresult result = reach(peer, "cuDeviceCanAccessPeer", &gpu);
    if (result == CUDA_SUCCESS)
        result = reach(device, "cuDeviceCanAccessPeer", &gpu);
    if (result == CUDA_SUCCESS)
        *can = 0;
    return result;
}

/* --- Contexts and streams, in which nothing can be done --------------------- */

/* TensorFlow 1 makes a context before it lists a GPU, and aborts without one. */

typedef const struct gpu *CUcontext;

static _Thread_local CUcontext current;

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    const struct gpu *gpu;
    CUresult result = reach(device, "cuDevicePrimaryCtxGetState", &gpu);
    if (result == CUDA_SUCCESS) {
        *flags = 0;
        *active = 0;
    }
    return result;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    const struct gpu *gpu;
    (void)flags;
    return reach(device, "cuDevicePrimaryCtxSetFlags", &gpu);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    return reach(device, "cuDevicePrimaryCtxRetain", context);
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    const struct gpu *gpu;
    return reach(device, "cuDevicePrimaryCtxRelease", &gpu);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    if (!initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    current = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    for (int i = 0; i < visible_count; i++)
        if (visible[i] == current) {
            *device = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_CONTEXT;
}

/* TensorFlow 1 makes streams and events beside the context, and fills the log if
 * it cannot. A stream into which nothing can be put is always done. */

typedef struct {
    char unused;
} *CUhandle;

static CUresult make(CUhandle *handle)
{
    if (current == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *handle = malloc(sizeof **handle);
    return *handle != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuStreamCreate(CUhandle *stream, unsigned flags)
{
    (void)flags;
    return make(stream);
}

EXPORT CUresult cuStreamSynchronize(CUhandle stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUhandle stream)
{
    free(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUhandle *event, unsigned flags)
{
    (void)flags;
    return make(event);
}

EXPORT CUresult cuEventDestroy_v2(CUhandle event)
{
    free(event);
    return CUDA_SUCCESS;
}

/* --- Attributes ------------------------------------------------------------- */

enum {
    COMPUTE_MODE = 20,
    ECC_ENABLED = 32,
    PCI_BUS_ID = 33,
    PCI_DEVICE_ID = 34,
    PCI_DOMAIN_ID = 50,
    CAPABILITY_MAJOR = 75,
    CAPABILITY_MINOR = 76,
    LAST_ATTRIBUTE = 147,
};

/* What frameworks read to describe a GPU; the numbers are an A100's. They must
 * be plausible (some are divided by), not true of the GPU in the file. */
static const int attributes[LAST_ATTRIBUTE + 1] = {
    [1] = 1024,        /* threads per block */
    [2] = 1024,        /* block dimension x */
    [3] = 1024,        /* block dimension y */
    [4] = 64,          /* block dimension z */
    [5] = 2147483647,  /* grid dimension x */
    [6] = 65535,       /* grid dimension y */
    [7] = 65535,       /* grid dimension z */
    [8] = 49152,       /* shared memory per block */
    [9] = 65536,       /* constant memory */
    [10] = 32,         /* warp size */
    [11] = 2147483647, /* pitch */
    [12] = 65536,      /* registers per block */
    [13] = 1410000,    /* clock, kHz */
    [14] = 512,        /* texture alignment */
    [15] = 1,          /* copies beside kernels */
    [16] = 108,        /* multiprocessors */
    [19] = 1,          /* can map host memory */
    [31] = 1,          /* concurrent kernels */
    [36] = 1215000,    /* memory clock, kHz */
    [37] = 5120,       /* memory bus width */
    [38] = 41943040,   /* L2 cache */
    [39] = 2048,       /* threads per multiprocessor */
    [40] = 3,          /* copy engines */
    [41] = 1,          /* unified addressing */
    [78] = 1,          /* stream priorities */
    [79] = 1,          /* L1 cache of globals */
    [80] = 1,          /* L1 cache of locals */
    [81] = 167936,     /* shared memory per multiprocessor */
    [82] = 65536,      /* registers per multiprocessor */
    [83] = 1,          /* managed memory */
    [89] = 1,          /* concurrent managed access */
    [90] = 1,          /* compute preemption */
    [95] = 1,          /* cooperative launch */
    [97] = 166912,     /* shared memory per block, on request */
    [99] = 1,          /* can register host memory */
    [102] = 1,         /* virtual memory management; JAX insists on it */
    [103] = 1,         /* memory handles as file descriptors */
    [106] = 32,        /* blocks per multiprocessor */
    [111] = 1024,      /* shared memory reserved per block */
    [115] = 1,         /* memory pools */
};

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    const struct gpu *gpu;
    CUresult result = reach(device, "cuDeviceGetAttribute", &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (attribute < 1 || attribute > LAST_ATTRIBUTE)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case COMPUTE_MODE:
        *value = gpu->compute_mode;
        break;
    case ECC_ENABLED:
        *value = gpu->ecc == FEATURE_ON;
        break;
    case PCI_BUS_ID:
        *value = (int)gpu->pci_bus;
        break;
    case PCI_DEVICE_ID:
        *value = (int)gpu->pci_device;
        break;
    case PCI_DOMAIN_ID:
        *value = (int)gpu->pci_domain;
        break;
    case CAPABILITY_MAJOR:
        *value = gpu->capability_major;
        break;
    case CAPABILITY_MINOR:
        *value = gpu->capability_minor;
        break;
    default:
        *value = attributes[attribute];
    }
    return CUDA_SUCCESS;
}

/* --- All other calls: there to be found, and to say no ---------------------- */

#define CALL(name)                                                                               \
    EXPORT CUresult name(void)                                                                   \
    {                                                                                            \
        return CUDA_ERROR_NOT_SUPPORTED;                                                         \
    }
#include "cuda_unserved.inc"
#undef CALL

/* --- Look-up by name, as the CUDA runtime does it --------------------------- */

EXPORT CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags);
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version,
                                    uint64_t flags, int *status);

/* The look-up's own verdict, beside its return code. */
enum { FOUND = 0, NO_SUCH_NAME = 1, NEWER_THAN_ASKED = 2 };

typedef void (*entry_point)(void);

/* A caller asks for a name without its suffix, and for the CUDA version whose
 * signature it knows: the newest row up to there is the one it means. */
static const struct {
    const char *name;
    int since;
    entry_point function;
} entries[] = {
#define ENTRY(since, name, function) {#name, since, (entry_point)function}
    ENTRY(2000, cuInit, cuInit),
    ENTRY(2020, cuDriverGetVersion, cuDriverGetVersion),
    ENTRY(6000, cuGetErrorName, cuGetErrorName),
    ENTRY(6000, cuGetErrorString, cuGetErrorString),
    ENTRY(2000, cuDeviceGetCount, cuDeviceGetCount),
    ENTRY(2000, cuDeviceGet, cuDeviceGet),
    ENTRY(4010, cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId),
    ENTRY(2000, cuDeviceGetName, cuDeviceGetName),
    ENTRY(9020, cuDeviceGetUuid, cuDeviceGetUuid),
    ENTRY(11040, cuDeviceGetUuid, cuDeviceGetUuid_v2),
    ENTRY(4010, cuDeviceGetPCIBusId, cuDeviceGetPCIBusId),
    ENTRY(2000, cuDeviceTotalMem, cuDeviceTotalMem),
    ENTRY(3020, cuDeviceTotalMem, cuDeviceTotalMem_v2),
    ENTRY(2000, cuDeviceComputeCapability, cuDeviceComputeCapability),
    ENTRY(4000, cuDeviceCanAccessPeer, cuDeviceCanAccessPeer),
    ENTRY(7000, cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState),
    ENTRY(7000, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain),
    ENTRY(7000, cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags),
    ENTRY(7000, cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease),
    ENTRY(2000, cuCtxGetDevice, cuCtxGetDevice),
    ENTRY(4000, cuCtxGetCurrent, cuCtxGetCurrent),
    ENTRY(4000, cuCtxSetCurrent, cuCtxSetCurrent),
    ENTRY(2000, cuStreamCreate, cuStreamCreate),
    ENTRY(2000, cuStreamSynchronize, cuStreamSynchronize),
    ENTRY(4000, cuStreamDestroy, cuStreamDestroy_v2),
    ENTRY(2000, cuEventCreate, cuEventCreate),
    ENTRY(4000, cuEventDestroy, cuEventDestroy_v2),
    ENTRY(2000, cuDeviceGetAttribute, cuDeviceGetAttribute),
    ENTRY(11030, cuGetProcAddress, cuGetProcAddress),
    ENTRY(12000, cuGetProcAddress, cuGetProcAddress_v2),
/* Suffixes and versions do not matter where every answer is the same. */
#define CALL(name) ENTRY(2000, name, name),
#include "cuda_unserved.inc"
#undef CALL
#undef ENTRY
};

enum { ENTRY_COUNT = sizeof entries / sizeof *entries };

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version,
                                    uint64_t flags, int *status)
{
    (void)flags; /* chooses between ways to order streams; no served call has any */
    int newest = config()->cuda_major * 1000 + config()->cuda_minor * 10;
    int verdict = NO_SUCH_NAME, best = 0;
    *address = NULL;
    for (int i = 0; i < ENTRY_COUNT && version <= newest; i++) {
        if (strcmp(entries[i].name, symbol) != 0)
            continue;
        if (entries[i].since <= version && entries[i].since > best) {
            best = entries[i].since;
            *address = (void *)entries[i].function;
        }
        verdict = *address != NULL ? FOUND : NEWER_THAN_ASKED;
    }
    if (status != NULL)
        *status = verdict;
    return version <= newest ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags)
{
    CUresult result = cuGetProcAddress_v2(symbol, address, version, flags, NULL);
    return result == CUDA_SUCCESS && *address == NULL ? CUDA_ERROR_NOT_FOUND : result;
}
