/* fuzz_wheel: covers store/wheel*.c: the files of the timers.  The first byte: 1 = timercheck is there, 2 = with our mark (and 4:
 * of an orderly stop), 8 = timerwheel is there, 16 = a second file of the timer log with the same bytes; the second: how many
 * slots.  Then 56 bytes of timercheck, the slots of 32 bytes each, and a file of the timer log.  Seeds: seeds/wheel, and the files of
 * tests/golden/store. */
#include "lab.h"
#include "base/byte.h"
#include "base/sys.h"
#include "store/wheel.h"

#include <fcntl.h>
#include <string.h>

enum { SLOTS_BYTES = 7 * 86400 * 2 * 32, FILE_BYTES = 4096, LOG_MAX = 1 << 20, STEPS_MAX = 100000 };

static int steps;

static int64_t queue_off(void *arg, const struct wheel_unit *u)
{
	return u->log_off / 100;
}

static int each(void *arg, const struct wheel_unit *u)
{
	LAB_CHECK(++steps < STEPS_MAX); /* chains end */
	return 0;
}

static void look(struct wheel *w)
{
	struct wheel_unit u;
	struct wheel_slot s;
	int64_t from = 0, ms;

	for (int i = 0; i < 20 && (ms = wheel_next(w, from, INT64_MAX / 2)) >= 0; i++) {
		LAB_CHECK(ms >= from);
		if (wheel_slot(w, ms, &s)) {
			wheel_read(w, s.last, &u);
			wheel_read(w, s.first, &u);
		}
		from = ms + wheel_step(w);
	}
	steps = 0;
	wheel_each(w, 0, INT64_MAX, each, NULL);
	wheel_pending(w, 0);
}

static void put_slots(const uint8_t *p, size_t n)
{
	const char *path = lab_path("timerwheel");
	int fd = sys.open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	LAB_CHECK(fd >= 0 && sys.ftruncate(fd, SLOTS_BYTES) == 0);
	for (; n >= 32; p += 32, n -= 32)
		LAB_CHECK(sys_write_all(fd, p, 32, (off_t)(be64(p) % (SLOTS_BYTES / 32) * 32)) == 0);
	sys.close(fd);
}

/* Where the marks of ours agree with the rest. */
static void put_check(const uint8_t *p, int how)
{
	uint8_t raw[4096] = { 0 };

	memcpy(raw, p, 56);
	if (how & 2) {
		put_be32(raw + 256, 0x6d715477);
		put_be32(raw + 260, how & 4 ? 1 : 0);
		memcpy(raw + 264, p, 8);
		memcpy(raw + 272, p + 24, 8);
		memcpy(raw + 280, p + 48, 8);
	}
	lab_write(lab_path("config/timercheck"), raw, sizeof(raw), 0);
}

static void write_one(struct wheel *w)
{
	struct wheel_unit u = { .magic = WHEEL_NORMAL, .write_ms = 1000, .due_ms = 5000, .log_off = 100, .size = 100 }, back;
	struct mq_error e = { 0 };
	struct wheel_flush *f;

	if (wheel_add(w, &u, &e) < 0) {
		LAB_CHECK(e.text[0]);
		return;
	}
	LAB_CHECK(wheel_read(w, u.pos, &back) == 0 && back.due_ms == u.due_ms && back.log_off == u.log_off);
	f = wheel_flush_begin(w, true);
	if (f) {
		wheel_flush_run(f);
		LAB_CHECK(wheel_flush_end(w, f, &e) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct wheel_opt o = { .dir = lab_dir(), .log_file_bytes = FILE_BYTES, .log_max = LOG_MAX, .queue_off = queue_off };
	size_t slots;
	struct mq_error e = { 0 };
	struct wheel *w;
	int how;

	if (n < 58)
		return 0;
	lab_quiet();
	how = p[0];
	slots = (size_t)p[1] % 8 * 32;
	sys_remove_tree(lab_path("timerlog"));
	sys.unlink(lab_path("timerwheel"));
	sys.unlink(lab_path("config/timercheck"));
	LAB_CHECK(sys_mkdir_all(lab_path("timerlog")) == 0 && sys_mkdir_all(lab_path("config")) == 0);
	if (how & 1)
		put_check(p + 2, how);
	p += 58;
	n -= 58;
	if (slots > n)
		slots = n;
	if (how & 8)
		put_slots(p, slots);
	p += slots;
	n -= slots;
	if (n > FILE_BYTES)
		n = FILE_BYTES;
	if (n)
		lab_write(lab_path("timerlog/00000000000000000000"), p, n, FILE_BYTES);
	if (n && how & 16)
		lab_write(lab_path("timerlog/00000000000000004096"), p, n, FILE_BYTES);

	o.read_only = true;
	if (wheel_open(&w, &o, &e) == 0) {
		look(w);
		wheel_close(w);
	} else {
		LAB_CHECK(e.text[0]);
	}
	o.read_only = false;
	o.precision_ms = 1000;
	if (wheel_open(&w, &o, &e) < 0) {
		LAB_CHECK(e.text[0]);
		return 0;
	}
	look(w);
	write_one(w);
	wheel_close(w);
	LAB_CHECK(wheel_open(&w, &o, &e) == 0);
	look(w);
	wheel_close(w);
	return 0;
}
