/* segment.h: one file of fixed size, mapped whole: a piece of the commit log or of a consume queue.
 *
 * Knows names, sizes, maps and blocks; nothing of what the bytes mean.  A byte may be written through a map only after
 * segment_reserve() has seen to it that the file has a block there: a full disk is then a return code and never a SIGBUS. */
#ifndef STORE_SEGMENT_H
#define STORE_SEGMENT_H

#include <mq.h>

enum { SEGMENT_NAME = 20, SEGMENT_PATH = 4096 };

struct segment {
	int64_t start;      /* offset of its first byte in the run, which is also its name */
	int64_t size;
	uint8_t *p;         /* NULL = not mapped at the moment */
	int64_t reserved;   /* bytes from the front that may be written through the map */
	int32_t pins;       /* jobs of other threads that use p: not to be unmapped */
	bool fresh;         /* made by us; name and size are not yet known to be on the disk */
	bool used;          /* looked at since the last sweep */
};

/* "DIR/00000000000000000000" into out. Returns out. */
char *segment_path(const char *dir, int64_t start, char out[SEGMENT_PATH]);
/* Start offset that a file name stands for, or -1 if it is no name of a segment. */
int64_t segment_name(const char *name);

/* Make a file of `size` bytes with blocks for the first `reserve`; when p is not NULL map it.  A file that is there already is
 * taken over if it has the right size or none.  Nothing is left behind on failure. */
int segment_file_make(const char *path, int64_t size, int64_t reserve, uint8_t **p);
/* Map an existing file.  MQ_EMISMATCH if it has not exactly `size` bytes. */
int segment_file_map(const char *path, int64_t size, bool write, uint8_t **p);
/* How a map will be read: here and there, so that nothing around is fetched (holes above all), or on and on. */
void segment_expect(uint8_t *p, int64_t size, bool here_and_there);
/* Blocks for [from, to): reserved where the file system can, else written with zeros: nothing of value may stand there. */
int segment_file_reserve(const char *path, int64_t from, int64_t to);
/* Make the contents of a file durable; with `name` the directory entry too.  A file that is gone is no error. */
int segment_file_sync(const char *path, bool name);

int segment_map(struct segment *g, const char *dir, bool write);
void segment_unmap(struct segment *g);
/* Bytes [.., to) of the segment will be written: MQ_EFULL, -errno. At least up to `to`, if possible up to `wish`. */
int segment_reserve(struct segment *g, const char *dir, int64_t from, int64_t to, int64_t wish);
/* Would reading [off, off + n) of a mapped segment be done without the disk? */
bool segment_resident(const struct segment *g, int64_t off, int64_t n);
/* First byte >= from that may be other than zero, or `to`: skips what the file system knows to be a hole. */
int64_t segment_data(const struct segment *g, const char *dir, int64_t from, int64_t to);

#endif
