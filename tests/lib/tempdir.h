/* tempdir.h: a fresh directory per test, and files in it. */
#ifndef TEST_TEMPDIR_H
#define TEST_TEMPDIR_H

/* For cmocka: *state is the path. */
int tempdir_make(void **state);
int tempdir_remove(void **state);
/* DIR/NAME; the text is good for 16 calls. */
const char *tempdir_path(void *state, const char *name);
void tempdir_write(const char *path, const char *text);
/* Content of a file; NULL if there is none.  Caller frees. */
char *tempdir_read(const char *path);

#endif
