/* The system calls of raconvert.files.small in one piece. Optional: without it Python does the
 * same. Nothing here says what is wrong: whatever is odd is None, and the usual way has the words.
 */

#ifndef __linux__
#error "Linux only: the build goes on without this extension"
#endif

#define _GNU_SOURCE
#define Py_LIMITED_API 0x030B0000 /* one build for Python 3.11 and all that follow */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is empty may be no file of a disk: those of /proc have no size, and content. */
enum { MOST = 1 << 20, DENSE = 1 << 16 }; /* bytes, as in small.py */

static int
is_small(const struct stat *found)
{
    return S_ISREG(found->st_mode) && found->st_size > 0 && found->st_size <= MOST &&
           (found->st_size <= DENSE || found->st_blocks * 512 >= found->st_size);
}

static int
is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A name that the system cannot have is one that is not there. */
static PyObject *
none_for_odd_names(void)
{
    if (!PyErr_ExceptionMatches(PyExc_ValueError))
        return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *
read_small(PyObject *self, PyObject *args)
{
    PyObject *name, *data = NULL;
    int folder, file, whole = 0;
    struct stat before, after;

    if (!PyArg_ParseTuple(args, "O&i", PyUnicode_FSConverter, &name, &folder))
        return none_for_odd_names();
    const char *path = PyBytes_AsString(name);
    Py_BEGIN_ALLOW_THREADS
    file = openat(folder, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0)
        whole = fstat(file, &before) == 0 && is_small(&before);
    Py_END_ALLOW_THREADS
    Py_DECREF(name);
    if (whole && (data = PyBytes_FromStringAndSize(NULL, before.st_size)) == NULL)
        PyErr_Clear();
    char *bytes = data == NULL ? NULL : PyBytes_AsString(data);
    whole = 0;
    Py_BEGIN_ALLOW_THREADS
    if (bytes != NULL)
        whole = read(file, bytes, before.st_size) == before.st_size &&
                fstat(file, &after) == 0 && is_same(&before, &after);
    if (file >= 0)
        close(file);
    Py_END_ALLOW_THREADS
    if (whole)
        return data;
    Py_XDECREF(data);
    Py_RETURN_NONE;
}

/* Give a file without a name one that is not taken. Returns 0, or -1. */
static int
give_name(int file, int folder, const char *path)
{
    static int by_path = 0; /* the short way takes a right, or Linux 6.10 */
    char place[64];

    if (!by_path) {
        if (linkat(file, "", folder, path, AT_EMPTY_PATH) == 0)
            return 0;
        if (errno == EEXIST)
            return -1;
    }
    snprintf(place, sizeof place, "/proc/self/fd/%d", file);
    if (linkat(AT_FDCWD, place, folder, path, AT_SYMLINK_FOLLOW) != 0)
        return -1;
    by_path = 1;
    return 0;
}

static PyObject *
write_small(PyObject *self, PyObject *args)
{
    PyObject *name, *beside;
    Py_buffer data;
    int mode, folder, sync, file = -1, whole = 0;
    struct stat found;

    if (!PyArg_ParseTuple(args, "O&O&y*iip", PyUnicode_FSConverter, &name, PyUnicode_FSConverter,
                          &beside, &data, &mode, &folder, &sync))
        return none_for_odd_names();
    const char *path = PyBytes_AsString(name), *other = PyBytes_AsString(beside);
    Py_BEGIN_ALLOW_THREADS
    if (fstatat(folder, other, &found, AT_SYMLINK_NOFOLLOW) != 0)
        file = openat(folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    if (file >= 0) {
        whole = write(file, data.buf, data.len) == data.len && fstat(file, &found) == 0 &&
                ((int)(found.st_mode & 07777) == mode || fchmod(file, mode) == 0) &&
                (!sync || fsync(file) == 0) &&
                give_name(file, folder, path) == 0;
        if (close(file) != 0 && whole) { /* what it could not write is not there */
            unlinkat(folder, path, 0);
            whole = 0;
        }
    }
    Py_END_ALLOW_THREADS
    Py_DECREF(name);
    Py_DECREF(beside);
    PyBuffer_Release(&data);
    if (!whole)
        Py_RETURN_NONE;
    return PyLong_FromLongLong(found.st_mtim.tv_sec * 1000000000LL + found.st_mtim.tv_nsec);
}

/* Size and time of change of a regular file, None for anything else. */
static PyObject *
look_at(PyObject *item, int folder)
{
    PyObject *name;
    struct stat found;

    if (!PyUnicode_FSConverter(item, &name))
        return none_for_odd_names();
    const char *path = PyBytes_AsString(name);
    int regular;
    Py_BEGIN_ALLOW_THREADS
    regular = fstatat(folder, path, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode);
    Py_END_ALLOW_THREADS
    Py_DECREF(name);
    if (!regular)
        Py_RETURN_NONE;
    return Py_BuildValue("(LL)", (long long)found.st_size,
                         found.st_mtim.tv_sec * 1000000000LL + found.st_mtim.tv_nsec);
}

static PyObject *
look_at_all(PyObject *self, PyObject *args)
{
    PyObject *names;
    int folder;

    if (!PyArg_ParseTuple(args, "O!i", &PyList_Type, &names, &folder))
        return NULL;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < PyList_Size(names); i++) {
        PyObject *one = look_at(PyList_GetItem(names, i), folder);
        if (one == NULL || PyList_Append(found, one) < 0)
            Py_CLEAR(found);
        Py_XDECREF(one);
    }
    return found;
}

static PyMethodDef functions[] = {
    {"read_small", read_small, METH_VARARGS,
     "read_small(name, folder): the bytes of a small regular file that nobody writes to, or None."},
    {"write_small", write_small, METH_VARARGS,
     "write_small(name, beside, data, mode, folder, sync): make a new file; its time, or None."},
    {"look_at_all", look_at_all, METH_VARARGS,
     "look_at_all(names, folder): (size, time of change) of each regular file, else None."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_small", "Small files by few system calls.", 0, functions, slots,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__small(void)
{
    return PyModuleDef_Init(&definition);
}
