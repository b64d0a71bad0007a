/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a plugin in a thread, and closes it before the thread ends. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static int (*plugin_main)(void);
static int result = 1;
static sem_t done, closed;

static void* run(void* unused) {
  result = plugin_main();
  sem_post(&done);
  sem_wait(&closed);
  return unused;
}

int main(int count, char** arguments) {
  void* plugin = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", count > 1 ? dlerror() : "which plugin?");
    return 1;
  }
  *(void**)&plugin_main = dlsym(plugin, "plugin_main");
  if (plugin_main == NULL) return 1;
  /* What the program calls is its own, not the plugin's. */
  if (dlsym(plugin, "tagline_create") != NULL ||
      dlsym(plugin, "tagline_jemalloc_mallocx") != NULL) {
    fprintf(stderr, "the plugin exports what it was linked with\n");
    return 1;
  }
  pthread_t thread;
  sem_init(&done, 0, 0);
  sem_init(&closed, 0, 0);
  if (pthread_create(&thread, NULL, run, NULL) != 0) return 1;
  sem_wait(&done);
  dlclose(plugin);
  sem_post(&closed);
  pthread_join(thread, NULL);
  return result;
}
