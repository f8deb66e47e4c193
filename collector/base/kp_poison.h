// SPDX-License-Identifier: Apache-2.0
/*
 * kp_poison.h - names that no source of the .so may use; include it last
 *
 * The host's heap, its stdio, its environment and its life are not ours: see docs of each replacement
 * (kp_arena.h, kp_log.h, kp_io.h, configuration is read once by boot.c).
 */
#ifndef KP_POISON_H
#define KP_POISON_H

#pragma GCC poison malloc calloc realloc free reallocarray posix_memalign aligned_alloc memalign strdup strndup asprintf vasprintf
#pragma GCC poison printf fprintf sprintf vprintf vfprintf vsprintf snprintf vsnprintf puts fputs putchar perror fopen fdopen fclose
#pragma GCC poison exit quick_exit _exit abort assert atexit raise
#pragma GCC poison getenv secure_getenv setenv putenv unsetenv strerror strtok setlocale
#pragma GCC poison system popen fork vfork execve execvp posix_spawn sleep usleep

#endif
