// Shifts the wall clock of a process by CLOCK_SHIFT_SECONDS. Waits until a moment of that clock end
// when they would without a shift.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>

#define ORIGINAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static time_t shift_seconds;

__attribute__((constructor)) static void read_shift(void) {
  const char *seconds = getenv("CLOCK_SHIFT_SECONDS");
  shift_seconds = seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = ORIGINAL(clock_gettime)(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += shift_seconds;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int result = ORIGINAL(gettimeofday)(now, zone);
  now->tv_sec += shift_seconds;
  return result;
}

int timespec_get(struct timespec *now, int base) {
  int result = ORIGINAL(timespec_get)(now, base);
  if (base == TIME_UTC) now->tv_sec += shift_seconds;
  return result;
}

time_t time(time_t *result) {
  time_t now = ORIGINAL(time)(NULL) + shift_seconds;
  if (result) *result = now;
  return now;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  struct timespec unshifted = {until->tv_sec - shift_seconds, until->tv_nsec};
  return ORIGINAL(pthread_cond_timedwait)(condition, mutex, &unshifted);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                  const struct timespec *restrict until) {
  struct timespec unshifted = {until->tv_sec - shift_seconds, until->tv_nsec};
  return ORIGINAL(cnd_timedwait)(condition, mutex, &unshifted);
}
