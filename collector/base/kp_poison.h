// SPDX-License-Identifier: Apache-2.0
/*
 * kp_poison.h - names that no source of the library may use; include it last
 *
 * The library must not touch the host's heap, stdio, environment or exit. Use kp_arena.h, kp_log.h and kp_io.h
 * instead. boot.c reads the configuration once.
 */
#pragma once

#pragma GCC poison malloc calloc realloc free reallocarray posix_memalign aligned_alloc memalign strdup strndup \
    asprintf vasprintf
#pragma GCC poison printf fprintf sprintf vprintf vfprintf vsprintf snprintf vsnprintf puts fputs putchar perror fopen \
    fdopen fclose
#pragma GCC poison exit quick_exit _exit abort assert atexit raise
#pragma GCC poison getenv secure_getenv setenv putenv unsetenv strerror strtok setlocale
#pragma GCC poison system popen fork vfork execve execvp posix_spawn sleep usleep
