/* fuzz_frame: covers codec/frame*.c, header*.c, request.c, message.c, batch.c and property.c together, as a server and a client
 * have them: a frame is parsed, its header decoded as the request and as each answer, its body taken for the records of a pull
 * and for a batch; and what came out is written again.  Seeds: tests/golden/wire. */
#include "lab.h"
#include "codec/batch.h"
#include "codec/property.h"
#include "codec/request.h"

#include <stdlib.h>
#include <string.h>

union any_header {
	struct send_header send;
	char room[2048];
};

/* A number may have been written otherwise ("+1"); whether it is there is kept, but that the binary encoding cannot tell an empty
 * text from none. */
static bool kept(const struct header_field *want, const struct frame *a, const struct frame *b)
{
	struct mq_str x = frame_get(a, want->name), y = frame_get(b, want->name);

	return !x.p == !y.p || want->alias || (x.n == 0 && b->type == FRAME_BINARY);
}

/* A header that was decoded is written in either encoding, and read again as the same. */
static void again(const struct frame *f, const struct request_row *row, const union any_header *h, int type)
{
	union any_header back_header;
	struct buf out = { 0 };
	struct frame_out o;
	struct frame back;
	struct mq_error e;
	char *copy;

	frame_request(&o, &out, type, f->code, f->opaque, f->flag);
	header_encode(row->header, h, f->code == REQ_SEND_MESSAGE_V2, &o);
	frame_body(&o);
	buf_str(o.buf, f->body);
	frame_end(&o);
	LAB_CHECK(frame_length(out.p, out.n) == (int64_t)out.n || out.n > FRAME_MAX);
	copy = lab_copy(out.p, out.n);
	/* Names and values longer than the binary encoding has room for do not come from a frame of that encoding. */
	if (frame_parse(copy, out.n, &back, &e) == 0) {
		LAB_CHECK(back.code == f->code && back.opaque == f->opaque && back.flag == f->flag);
		LAB_CHECK(back.body.n == f->body.n);
		for (uint32_t i = 0; i < row->header->n; i++)
			LAB_CHECK(!row->header->field[i].required || kept(&row->header->field[i], f, &back));
		if (header_decode(row->header, &back, &back_header, &e) < 0)
			LAB_CHECK(type == FRAME_BINARY);
	} else {
		LAB_CHECK(type != f->type || out.n > FRAME_MAX);
	}
	free(copy);
	buf_free(&out);
}

static void properties(struct mq_str props)
{
	struct mq_str name, value;
	struct property_scan s;
	size_t pos = 0, n = 0;

	while (mq_prop_next(props, &pos, &name, &value))
		n++;
	LAB_CHECK(n <= props.n);
	mq_prop_get(props, "KEYS");
	property_scan(props, &s);
}

static void records(struct mq_str body)
{
	void *scratch = NULL;
	size_t cap = 0;
	struct mq_message m;
	struct mq_str plain;

	for (size_t at = 0; at < body.n;) {
		int32_t n = mq_message_decode(body.p + at, body.n - at, true, &m);

		LAB_CHECK(n <= 0 || (size_t)n <= body.n - at);
		if (n <= 0)
			break;
		LAB_CHECK(n == m.size);
		properties(m.props);
		mq_message_body(&m, 1 << 20, &scratch, &cap, &plain);
		at += (size_t)n;
	}
	free(scratch);
}

static void batch(struct mq_str body)
{
	struct batch_item item;
	size_t pos = 0;
	int rc;

	while ((rc = batch_next(body, &pos, &item)) == 1) {
		LAB_CHECK(pos <= body.n);
		properties(item.props);
	}
	LAB_CHECK(rc == 0 || rc == MQ_ECORRUPT);
}

static void headers(const struct frame *f)
{
	const struct request_row *row = request_find(f->code), *rows;
	union any_header h;
	struct mq_error e;
	size_t n;

	if (row && row->header) {
		LAB_CHECK(row->header->size <= sizeof(h));
		if (header_decode(row->header, f, &h, &e) == 0) {
			again(f, row, &h, FRAME_JSON);
			again(f, row, &h, FRAME_BINARY);
		} else {
			LAB_CHECK(e.text[0]);
		}
	}
	rows = request_rows(&n);
	for (size_t i = 0; i < n; i++)
		if (rows[i].answer && rows[i].answer->size <= sizeof(h))
			header_decode(rows[i].answer, f, &h, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *copy;
	struct frame f;
	struct mq_error e = { 0 };
	int64_t length = frame_length(p, n);

	if (length <= 0 || (size_t)length > n)
		return 0;
	LAB_CHECK(length <= FRAME_MAX);
	copy = lab_copy(p, (size_t)length);
	if (frame_parse(copy, (size_t)length, &f, &e) == 0) {
		LAB_CHECK(f.nfields <= FRAME_FIELDS_MAX && f.body.n <= n);
		headers(&f);
		records(f.body);
		batch(f.body);
	} else {
		LAB_CHECK(e.text[0]);
	}
	free(copy);
	return 0;
}
