/* A stand-in for libnvidia-ml.so.1: one GPU whose figures come from environment variables, for tests without an NVIDIA driver. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define SUCCESS 0
#define NOT_SUPPORTED 3
#define DRIVER_NOT_LOADED 9

static unsigned long long figure(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

int nvmlInit_v2(void) { return getenv("FAKE_NO_DRIVER") ? DRIVER_NOT_LOADED : SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = figure("FAKE_COUNT", 2); return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(unsigned long)(index + 1); return SUCCESS; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) { *device = (void *)9UL; return strcmp(uuid, "GPU-nine") ? 6 : SUCCESS; }
int nvmlDeviceGetName(void *device, char *name, unsigned size) { snprintf(name, size, "Fake A100 #%lu", (unsigned long)device - 1); return SUCCESS; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.65.06"); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13000; return SUCCESS; }
int nvmlDeviceGetClockInfo(void *device, unsigned kind, unsigned *mhz) { *mhz = kind == 0 ? 1095 : 1512; return SUCCESS; }
int nvmlDeviceGetMaxClockInfo(void *device, unsigned kind, unsigned *mhz) { *mhz = 1410; return SUCCESS; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = figure("FAKE_MILLIWATTS", 62500);
    return getenv("FAKE_NO_POWER") ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) { *milliwatts = 400000; return SUCCESS; }
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) { *millijoules = 123456; return SUCCESS; }
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) { *celsius = 41; return SUCCESS; }
/* Old driver: the newer name nvmlDeviceGetCurrentClocksEventReasons is missing. */
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *mask) { *mask = figure("FAKE_REASONS", 1); return SUCCESS; }
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *sizes) {
    sizes[0] = 85899345920ULL; sizes[1] = 85000000000ULL; sizes[2] = 899345920ULL;
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) { rates[0] = 37; rates[1] = 12; return SUCCESS; }
