/* task.c: see task.h.  Stacks are mapped, with a page below that faults, and kept for the next task. */
#include "task.h"
#include "../bin/cli.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <uv.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096, KEEP = 64 };

struct task {
	ucontext_t self, back;
	struct task *outer;             /* who woke it, if that was a task */
	struct task *next;              /* in the list of those that are kept */
	char *stack;
	void (*fn)(void *arg);
	void *arg;
	int64_t deadline_ms;
	bool ended;
	void *fake;                     /* the sanitizer's shadow of our stack while we are parked */
	const void *back_bottom;        /* the stack of who woke us */
	size_t back_size;
};

static struct task *running, *kept;
static int nkept;

int64_t task_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct task *task_self(void) { return running; }

int64_t task_left_ms(void)
{
	int64_t left = running ? running->deadline_ms - task_now_ms() : 1;

	return left > 1 ? left : 1;
}

/* ---- Going from stack to stack: the sanitizer has to be told ----------------------------------------------------- */

static void before_switch(void **fake, const void *bottom, size_t size)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(fake, bottom, size);
#endif
}

static void after_switch(void *fake, const void **bottom, size_t *size)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(fake, bottom, size);
#endif
}

static void entry(void)
{
	struct task *t = running;

	after_switch(NULL, &t->back_bottom, &t->back_size);
	t->fn(t->arg);
	t->ended = true;
	before_switch(NULL, t->back_bottom, t->back_size);
	setcontext(&t->back);
}

void task_park(void)
{
	before_switch(&running->fake, running->back_bottom, running->back_size);
	swapcontext(&running->self, &running->back);
	/* Whoever woke us has set `running` to us again. */
	after_switch(running->fake, &running->back_bottom, &running->back_size);
}

static struct task *new_task(void)
{
	struct task *t = kept;

	if (t) {
		kept = t->next;
		nkept--;
		return t;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		cli_die(CLI_SYSTEM, "out of memory");
	t->stack = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (t->stack == MAP_FAILED)
		cli_die(CLI_SYSTEM, "out of memory");
	mprotect(t->stack, GUARD_BYTES, PROT_NONE);
	return t;
}

static void free_task(struct task *t)
{
	munmap(t->stack, STACK_BYTES + GUARD_BYTES);
	free(t);
}

void task_wake(struct task *t)
{
	void *fake = NULL;

	t->outer = running;
	running = t;
	before_switch(&fake, t->stack + GUARD_BYTES, STACK_BYTES);
	swapcontext(&t->back, &t->self);
	after_switch(fake, NULL, NULL);
	running = t->outer;
	if (!t->ended)
		return;
	if (nkept >= KEEP) {
		free_task(t);
		return;
	}
	t->next = kept;
	kept = t;
	nkept++;
}

/* By itself: getcontext() may return twice, and what its caller holds would have to live through that. */
__attribute__((noinline)) static void prepare(struct task *t)
{
	getcontext(&t->self);
	t->self.uc_stack.ss_sp = t->stack + GUARD_BYTES;
	t->self.uc_stack.ss_size = STACK_BYTES;
	t->self.uc_link = NULL;
	makecontext(&t->self, entry, 0);
}

void task_start(void (*fn)(void *arg), void *arg, int64_t deadline_ms)
{
	struct task *t = new_task();

	t->fn = fn;
	t->arg = arg;
	t->deadline_ms = deadline_ms;
	t->ended = false;
	t->fake = NULL;
	prepare(t);
	task_wake(t);
}

/* ---- Sleeping ---------------------------------------------------------------------------------------------------- */

static uv_loop_t *loop;

void task_init(uv_loop_t *l) { loop = l; }

struct sleeper {
	uv_timer_t timer;
	struct task *task;
};

static void on_closed(uv_handle_t *h) { free(h->data); }

static void on_timer(uv_timer_t *t)
{
	struct sleeper *s = t->data;
	struct task *task = s->task;

	uv_close((uv_handle_t *)t, on_closed);
	task_wake(task);
}

void task_sleep(int64_t ms)
{
	struct sleeper *s = malloc(sizeof(*s));

	if (!s)
		cli_die(CLI_SYSTEM, "out of memory");
	s->task = running;
	s->timer.data = s;
	uv_timer_init(loop, &s->timer);
	uv_timer_start(&s->timer, on_timer, (uint64_t)ms, 0);
	task_park();
}

void task_free_stacks(void)
{
	struct task *t;

	while ((t = kept)) {
		kept = t->next;
		free_task(t);
	}
	nkept = 0;
}
