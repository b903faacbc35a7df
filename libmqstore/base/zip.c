/* zip.c: the three body formats of the peer.  Knows the libraries; which bit of sysFlag means what is in mq.h.
 *
 * What comes out is bounded by the caller, and grows with what is really there: a header that promises much costs nothing. */
#include "zip.h"

#include <errno.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

enum kind { NONE, ZLIB, LZ4, ZSTD };

static enum kind kind_of(int32_t type)
{
	switch (type & MQ_SYS_COMPRESS_TYPE) {
	case 0:
	case MQ_SYS_COMPRESS_ZLIB:
		return ZLIB;
	case MQ_SYS_COMPRESS_LZ4:
		return LZ4;
	case MQ_SYS_COMPRESS_ZSTD:
		return ZSTD;
	}
	return NONE;
}

static int pack_zlib(int level, struct mq_str in, struct buf *out)
{
	z_stream z = { 0 };
	uLong bound;

	if (in.n > UINT32_MAX / 2 || deflateInit(&z, level < 0 || level > 9 ? Z_DEFAULT_COMPRESSION : level) != Z_OK)
		return MQ_EUNSUPPORTED;
	bound = deflateBound(&z, in.n);
	z.next_in = (Bytef *)(uintptr_t)in.p;
	z.avail_in = (uInt)in.n;
	z.next_out = (Bytef *)buf_room(out, bound);
	z.avail_out = (uInt)bound;
	deflate(&z, Z_FINISH); /* cannot fall short of deflateBound() */
	out->n += z.total_out;
	deflateEnd(&z);
	return 0;
}

int zip_pack(int32_t type, int level, struct mq_str in, struct buf *out)
{
	size_t bound, n;

	switch (kind_of(type)) {
	case ZLIB:
		return pack_zlib(level, in, out);
	case LZ4: {
		LZ4F_preferences_t prefs = LZ4F_INIT_PREFERENCES;

		prefs.compressionLevel = level;
		bound = LZ4F_compressFrameBound(in.n, &prefs);
		n = LZ4F_compressFrame(buf_room(out, bound), bound, in.p, in.n, &prefs);
		if (LZ4F_isError(n))
			return MQ_EUNSUPPORTED;
		break;
	}
	case ZSTD:
		bound = ZSTD_compressBound(in.n);
		n = ZSTD_compress(buf_room(out, bound), bound, in.p, in.n, level);
		if (ZSTD_isError(n))
			return MQ_EUNSUPPORTED;
		break;
	default:
		return MQ_EUNSUPPORTED;
	}
	out->n += n;
	return 0;
}

/* A stream being unpacked.  step() takes what it can from `in`, writes what it can to room[0..n): *made bytes.
 * Returns 1 at the end of the stream, 0 to go on, MQ_ECORRUPT. */
struct unpack {
	struct mq_str in;
	z_stream z;
	LZ4F_dctx *lz4;
	ZSTD_DStream *zstd;
	int (*step)(struct unpack *u, char *room, size_t n, size_t *made);
};

static int step_zlib(struct unpack *u, char *room, size_t n, size_t *made)
{
	uInt in_n = u->in.n > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)u->in.n;
	uInt out_n = n > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)n;
	int rc;

	u->z.next_in = (Bytef *)(uintptr_t)u->in.p;
	u->z.avail_in = in_n;
	u->z.next_out = (Bytef *)room;
	u->z.avail_out = out_n;
	rc = inflate(&u->z, Z_NO_FLUSH);
	u->in.p += in_n - u->z.avail_in;
	u->in.n -= in_n - u->z.avail_in;
	*made = out_n - u->z.avail_out;
	if (rc == Z_STREAM_END)
		return 1; /* compat: what follows is ignored, as by Java's InflaterInputStream */
	return rc == Z_OK || rc == Z_BUF_ERROR ? 0 : MQ_ECORRUPT;
}

static int step_lz4(struct unpack *u, char *room, size_t n, size_t *made)
{
	size_t used = u->in.n, left;

	*made = n;
	left = LZ4F_decompress(u->lz4, room, made, u->in.p, &used, NULL);
	if (LZ4F_isError(left))
		return MQ_ECORRUPT;
	u->in.p += used;
	u->in.n -= used;
	return left == 0 && u->in.n == 0;
}

static int step_zstd(struct unpack *u, char *room, size_t n, size_t *made)
{
	ZSTD_inBuffer in = { u->in.p, u->in.n, 0 };
	ZSTD_outBuffer out = { room, n, 0 };
	size_t left = ZSTD_decompressStream(u->zstd, &out, &in);

	if (ZSTD_isError(left))
		return MQ_ECORRUPT;
	u->in.p += in.pos;
	u->in.n -= in.pos;
	*made = out.pos;
	return left == 0 && u->in.n == 0;
}

static int unpack_start(struct unpack *u, enum kind kind)
{
	switch (kind) {
	case ZLIB:
		u->step = step_zlib;
		return inflateInit(&u->z) == Z_OK ? 0 : -ENOMEM;
	case LZ4:
		u->step = step_lz4;
		return LZ4F_isError(LZ4F_createDecompressionContext(&u->lz4, LZ4F_VERSION)) ? -ENOMEM : 0;
	case ZSTD:
		u->step = step_zstd;
		u->zstd = ZSTD_createDStream();
		return u->zstd ? 0 : -ENOMEM;
	default:
		return MQ_EUNSUPPORTED;
	}
}

static void unpack_end(struct unpack *u)
{
	if (u->step == step_zlib)
		inflateEnd(&u->z);
	LZ4F_freeDecompressionContext(u->lz4);
	ZSTD_freeDStream(u->zstd);
}

int zip_unpack(int32_t type, struct mq_str in, size_t max, struct buf *out)
{
	struct unpack u = { .in = in };
	size_t before = out->n, room = in.n * 4 < 1024 ? 1024 : in.n * 4;
	int rc = unpack_start(&u, kind_of(type));

	while (rc == 0) {
		size_t had = u.in.n, total = out->n - before, made = 0;

		/* One byte beyond max tells a body that is too big from one that just fits. */
		if (room > max - total + 1)
			room = max - total + 1;
		rc = u.step(&u, buf_room(out, room), room, &made);
		out->n += made;
		if (rc >= 0 && total + made > max)
			rc = MQ_ETOOBIG;
		else if (rc == 0 && made == 0 && u.in.n == had)
			rc = MQ_ECORRUPT; /* cut short */
		if (made == room && room < 1 << 20)
			room *= 2;
	}
	unpack_end(&u);
	if (rc < 0)
		out->n = before;
	return rc < 0 ? rc : 0;
}
