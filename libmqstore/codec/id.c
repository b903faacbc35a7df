/* id.c: the two kinds of message id, as upper-case hex: where a message lies, and who made it.
 *
 *   offset id   store address (4 or 16) | i32 port | i64 log offset
 *   UNIQ_KEY    address (4) | i16 pid | i32 random | u32 ms since the start of the month | u16 counter
 *
 * Both have 32 characters with IPv4, so that a UNIQ_KEY cannot be told from an offset id by its shape. */
#include "id.h"
#include "../base/byte.h"
#include <sodium.h>
#include <time.h>
#include <unistd.h>

static char *put_hex(char *out, const uint8_t *p, size_t n)
{
	static const char digit[] = "0123456789ABCDEF";
	for (size_t i = 0; i < n; i++) {
		*out++ = digit[p[i] >> 4];
		*out++ = digit[p[i] & 15];
	}
	return out;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t mq_offset_id(const struct mq_host *host, int64_t log_off, char out[MQ_ID_TEXT])
{
	uint8_t raw[28], *p = raw;
	size_t ip = host->len == 16 ? 16 : 4;
	memcpy(p, host->ip, ip);
	put_be32(p + ip, (uint32_t)host->port);
	put_be64(p + ip + 4, (uint64_t)log_off);
	char *end = put_hex(out, raw, ip + 12);
	*end = 0;
	return (size_t)(end - out);
}

int mq_offset_id_parse(struct mq_str id, struct mq_host *host, int64_t *log_off)
{
	uint8_t raw[28];
	if (id.n != 32 && id.n != 56)
		return MQ_EINVAL;
	for (size_t i = 0; i < id.n / 2; i++) {
		int hi = hex_value(id.p[2 * i]), lo = hex_value(id.p[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return MQ_EINVAL;
		raw[i] = (uint8_t)(hi << 4 | lo);
	}
	memset(host, 0, sizeof(*host));
	host->len = id.n == 32 ? 4 : 16;
	memcpy(host->ip, raw, host->len);
	host->port = (int32_t)be32(raw + host->len);
	*log_off = (int64_t)be64(raw + host->len + 4);
	return 0;
}

enum { AT_PID = 4, AT_RANDOM = 6, RANDOM_BYTES = 4 };

/* The month that `ms` lies in.  With each month time starts again at zero, so a new random part is drawn, or a process that
 * lives longer than a month could make an id again. */
static void set_month(struct id_maker *m, int64_t ms)
{
	time_t t = ms / 1000;
	struct tm tm;
	localtime_r(&t, &tm);
	tm = (struct tm){ .tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = 1, .tm_isdst = -1 };
	struct tm next = tm;
	next.tm_mon++;
	m->month_start_ms = (int64_t)mktime(&tm) * 1000;
	m->month_end_ms = (int64_t)mktime(&next) * 1000;
	randombytes_buf(m->prefix + AT_RANDOM, RANDOM_BYTES);
}

void id_maker_init(struct id_maker *m, const uint8_t ip4[4])
{
	*m = (struct id_maker){ .last_ms = INT64_MIN };
	memcpy(m->prefix, ip4, 4);
	put_be16(m->prefix + AT_PID, (uint16_t)getpid());
}

void id_make(struct id_maker *m, int64_t now_ms, char out[33])
{
	/* Time never goes back, and moves on by itself when 65,536 ids were made in one millisecond. */
	if (now_ms > m->last_ms) {
		m->last_ms = now_ms;
		m->counter = 0;
	} else if (++m->counter > UINT16_MAX) {
		m->last_ms++;
		m->counter = 0;
	}
	if (m->last_ms >= m->month_end_ms)
		set_month(m, m->last_ms);
	uint8_t raw[16];
	memcpy(raw, m->prefix, sizeof(m->prefix));
	put_be32(raw + 10, (uint32_t)(m->last_ms - m->month_start_ms));
	put_be16(raw + 14, (uint16_t)m->counter);
	*put_hex(out, raw, sizeof(raw)) = 0;
}
