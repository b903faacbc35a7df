/* index_files.h: the files of an index, oldest first: their names, what a crash left of them, making and removing.
 *
 * Knows the directory; leaves what is put and what is missing to index.c. */
#ifndef STORE_INDEX_FILES_H
#define STORE_INDEX_FILES_H

#include "index_file.h"

struct index_files {
	char *dir;
	int32_t slots, entries;     /* of new files */
	bool read_only, adopt_sizes;
	bool suspect;               /* a file was found whose contents do not look right */
	bool told;                  /* the log was told what is left out */
	bool new_name;              /* a file was made since the directory was synced */
	struct index_file **v;      /* the last one is written */
	size_t n, cap;
};

static inline struct index_file *index_files_last(const struct index_files *fs) { return fs->n ? fs->v[fs->n - 1] : NULL; }

/* Open the files that are not in yet.  Half-made ones are removed when writable, left out when not.  A missing directory is
 * empty.  Returns 0, MQ_EMISMATCH, or -errno. */
int index_files_load(struct index_files *fs, struct mq_error *err);
void index_files_close(struct index_files *fs);
void index_files_add(struct index_files *fs, struct index_file *f);
void index_files_remove(struct index_files *fs, size_t i);      /* from the disk too */
/* Only its name goes, and it is out of fs: the caller's. */
struct index_file *index_files_unlink(struct index_files *fs, size_t i);
void index_files_forget_gone(struct index_files *fs);           /* those that somebody else removed */

/* After a crash: mend all that a checkpoint does not cover, and remove what cannot be trusted. */
void index_files_repair(struct index_files *fs, int64_t checkpoint_ms);
/* Remove files without an entry but the newest. */
void index_files_drop_empty(struct index_files *fs);
/* Take back everything at or beyond log_off. */
void index_files_cut(struct index_files *fs, int64_t log_off);

/* Make the file that will follow the last; it is not added yet.  Returns 0 or -errno. */
int index_files_make(struct index_files *fs, struct index_file **f);

#endif
