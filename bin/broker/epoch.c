/* epoch.c: a short array; searches are linear, for they happen at a connection or an election, not at a message. */
#include "epoch.h"
#include <base/crc.h>
#include <base/err.h>
#include <base/str.h>

#include <string.h>

int32_t epoch_last(const struct epoch_list *l)
{
	return l->n ? l->v[l->n - 1].number : -1;
}

const struct epoch *epoch_at(const struct epoch_list *l, int64_t off)
{
	for (size_t i = l->n; i--;)
		if (l->v[i].start <= off)
			return &l->v[i];
	return NULL;
}

int64_t epoch_end(const struct epoch_list *l, size_t i, int64_t log_end)
{
	return i + 1 < l->n ? l->v[i + 1].start : log_end;
}

int epoch_append(struct epoch_list *l, int32_t number, int64_t start, struct mq_error *why)
{
	const struct epoch *last = l->n ? &l->v[l->n - 1] : NULL;

	if (number < 0 || start < 0)
		return err_set(why, MQ_EINVAL, "epoch %d from %lld on is none: both count from 0", number, (long long)start);
	if (last && number <= last->number)
		return err_set(why, MQ_EINVAL, "epoch %d comes after epoch %d: numbers only grow", number, last->number);
	if (last && start < last->start)
		return err_set(why, MQ_EINVAL, "epoch %d from %lld on begins before epoch %d, which begins at %lld", number,
			       (long long)start, last->number, (long long)last->start);
	if (last && start == last->start) {
		l->n--;
	} else if (l->n == EPOCH_MAX) {
		l->n--;
		memmove(l->v, l->v + 1, l->n * sizeof(l->v[0]));
	}
	l->v[l->n++] = (struct epoch){ number, start };
	return 0;
}

int epoch_begin(struct epoch_list *l, int32_t number, bool whole, int64_t min, int64_t end, struct mq_error *why)
{
	if (number < epoch_last(l))
		return err_set(why, MQ_EINVAL, "epoch %d cannot begin: the log here already knows epoch %d", number, epoch_last(l));
	if (number == epoch_last(l) && whole)
		return 0;
	if (number == epoch_last(l))
		l->n--;
	return epoch_append(l, number, l->n ? end : min, why);
}

void epoch_cut(struct epoch_list *l, int64_t off)
{
	while (l->n && l->v[l->n - 1].start >= off)
		l->n--;
}

void epoch_forget(struct epoch_list *l, int64_t min)
{
	size_t gone = 0;

	while (gone + 1 < l->n && l->v[gone + 1].start <= min)
		gone++;
	l->n -= gone;
	memmove(l->v, l->v + gone, l->n * sizeof(l->v[0]));
}

int64_t epoch_agree(const struct epoch_list *mine, int64_t my_end, const struct epoch_list *theirs, int64_t their_end)
{
	size_t j = theirs->n;

	for (size_t i = mine->n; i--;) {
		while (j && theirs->v[j - 1].number > mine->v[i].number)
			j--;
		if (j && theirs->v[j - 1].number == mine->v[i].number && theirs->v[j - 1].start == mine->v[i].start) {
			int64_t a = epoch_end(mine, i, my_end), b = epoch_end(theirs, j - 1, their_end);

			return a < b ? a : b;
		}
	}
	return -1;
}

void epoch_encode(const struct epoch_list *l, struct buf *out)
{
	struct buf lines = { 0 };

	for (size_t i = 0; i < l->n; i++)
		buf_printf(&lines, "%d-%lld\n", l->v[i].number, (long long)l->v[i].start);
	buf_printf(out, "%zu\n%u\n", l->n, crc32_peer(lines.p, lines.n));
	buf_str(out, buf_view(&lines));
	buf_free(&lines);
}

static int damaged(struct epoch_list *l, struct mq_error *why, const char *what)
{
	l->n = 0;
	return err_set(why, MQ_ECORRUPT, "the list of epochs is damaged: %s", what);
}

int epoch_decode(struct mq_str text, struct epoch_list *l, struct mq_error *why)
{
	struct mq_str line, number;
	int64_t n, crc, start;
	int32_t epoch;

	l->n = 0;
	if (!str_split(&text, '\n', &line) || str_i64(line, &n) < 0 || n < 0)
		return damaged(l, why, "the first line is not a number of entries");
	if (!str_split(&text, '\n', &line) || str_i64(line, &crc) < 0)
		return damaged(l, why, "the second line is not a checksum");
	if (crc != 0 && crc != (int64_t)crc32_peer(text.p, text.n))
		return damaged(l, why, "its checksum is another");
	for (int64_t i = 0; i < n; i++) {
		if (!str_split(&text, '\n', &line) || !str_split(&line, '-', &number) || str_i32(number, &epoch) < 0 ||
		    str_i64(line, &start) < 0 || epoch_append(l, epoch, start, NULL) < 0)
			return damaged(l, why, "an entry is not epoch-offset, both growing");
	}
	if (text.n)
		return damaged(l, why, "there are more entries than its first line says");
	return 0;
}
