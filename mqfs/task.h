/* task.h: a request of the kernel as straight-line code on the loop.
 *
 * A task is a function with a stack of its own that runs on the loop's thread.  Where it has to wait for an answer of a broker it parks;
 * the callback that brings the answer wakes it, and it goes on inside that callback until it parks again or ends.  So nothing ever
 * blocks, and what takes five questions reads as five lines.  There is one thread: between two parks nobody else runs.
 *
 * Each task has a time by which it has to be done; who waits asks task_left_ms() how long it may. */
#ifndef MQFS_TASK_H
#define MQFS_TASK_H

#include <stdint.h>

struct task;

/* Runs fn(arg) now, until it parks or ends. */
void task_start(void (*fn)(void *arg), void *arg, int64_t deadline_ms);
/* The task that runs; NULL outside of tasks. */
struct task *task_self(void);
/* Until somebody wakes it. */
void task_park(void);
/* Runs it now; returns when it has parked again or ended.  Each park has exactly one wake. */
void task_wake(struct task *t);
/* So long; on the loop that task_init() was given. */
struct uv_loop_s;
void task_init(struct uv_loop_s *loop);
void task_sleep(int64_t ms);
/* Until the deadline, at least 1. */
int64_t task_left_ms(void);
/* Monotonic. */
int64_t task_now_ms(void);
/* Stacks that are kept for later go. */
void task_free_stacks(void);

#endif
