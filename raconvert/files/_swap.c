/* Bytes from file to file, and numbers in the other byte order, in place or on that way. Optional:
 * without it Python and numpy do the same. The lock of Python is not held meanwhile.
 */

#if !defined(__GNUC__) || defined(_WIN32)
#error "gcc and clang have the words for it: the build goes on without this extension"
#endif

#define Py_LIMITED_API 0x030B0000 /* one build for Python 3.11 and all that follow */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Through memcpy, since numbers need not be aligned. */
#define EACH(type, swapped)                                                                        \
    for (Py_ssize_t at = 0; at < count; at++) {                                                    \
        type number;                                                                               \
        memcpy(&number, bytes + at * sizeof number, sizeof number);                                \
        number = swapped(number);                                                                  \
        memcpy(bytes + at * sizeof number, &number, sizeof number);                                \
    }

static void
reverse_each(unsigned char *bytes, Py_ssize_t count, Py_ssize_t width)
{
    for (; count > 0; count--, bytes += width) {
        for (Py_ssize_t low = 0, high = width - 1; low < high; low++, high--) {
            unsigned char byte = bytes[low];
            bytes[low] = bytes[high];
            bytes[high] = byte;
        }
    }
}

#ifdef __x86_64__
/* The same for widths that divide 16, as far as whole vectors go; returns the bytes done. */
__attribute__((target("avx2"))) static Py_ssize_t
reverse_vectors(unsigned char *bytes, Py_ssize_t nbytes, Py_ssize_t width)
{
    unsigned char order[32];
    Py_ssize_t at;

    for (at = 0; at < 32; at++)
        order[at] = (unsigned char)((at & 15) ^ (width - 1));
    const __m256i by = _mm256_loadu_si256((const __m256i *)order);
    for (at = 0; at + 32 <= nbytes; at += 32) {
        __m256i *place = (__m256i *)(bytes + at);
        _mm256_storeu_si256(place, _mm256_shuffle_epi8(_mm256_loadu_si256(place), by));
    }
    return at;
}
#endif

/* Reverse the bytes of every number of a whole number of them. */
static void
reverse(unsigned char *bytes, Py_ssize_t nbytes, Py_ssize_t width)
{
#ifdef __x86_64__
    int whole = width == 2 || width == 4 || width == 8 || width == 16;
    if (whole && __builtin_cpu_supports("avx2")) {
        Py_ssize_t done = reverse_vectors(bytes, nbytes, width);
        bytes += done;
        nbytes -= done;
    }
#endif
    Py_ssize_t count = nbytes / width;
    if (width == 2)
        EACH(uint16_t, __builtin_bswap16)
    else if (width == 4)
        EACH(uint32_t, __builtin_bswap32)
    else if (width == 8)
        EACH(uint64_t, __builtin_bswap64)
    else if (width > 1)
        reverse_each(bytes, count, width);
}

static PyObject *
swap(PyObject *self, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t width;

    if (!PyArg_ParseTuple(args, "w*n", &data, &width))
        return NULL;
    if (width < 1 || data.len % width != 0) {
        PyBuffer_Release(&data);
        PyErr_SetString(PyExc_ValueError, "not a whole number of numbers of this width");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    reverse(data.buf, data.len, width);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    Py_RETURN_NONE;
}

/* Fill the bytes from a place of a file; returns 0 if that is not possible, for whatever reason. */
static int
read_whole(int file, unsigned char *bytes, Py_ssize_t count, long long place)
{
    while (count > 0) {
        ssize_t got = pread(file, bytes, count, place);
        if (got <= 0)
            return 0;
        bytes += got;
        count -= got;
        place += got;
    }
    return 1;
}

/* Write all bytes; returns 0, with errno, if the system refuses or a signal ends it (an exception
 * of Python is set then). */
static int
write_whole(int file, const unsigned char *bytes, Py_ssize_t count, long long place,
            PyThreadState **thread)
{
    while (count > 0) {
        ssize_t put = pwrite(file, bytes, count, place);
        if (put < 0 && errno == EINTR) {
            PyEval_RestoreThread(*thread);
            int ends = PyErr_CheckSignals();
            *thread = PyEval_SaveThread();
            if (ends)
                return 0;
            continue;
        }
        if (put <= 0) {
            errno = put == 0 ? EIO : errno;
            return 0;
        }
        bytes += put;
        count -= put;
        place += put;
    }
    return 1;
}

typedef struct {
    int from, to;
    long long offset, place; /* where reading and writing begin */
    Py_ssize_t nbytes, width, slab;
    Py_buffer buffer;
} Job;

static int
is_possible(const Job *job)
{
    const long long most = 1LL << 60; /* sums of three are numbers yet */

    return job->offset >= 0 && job->offset <= most && job->place >= 0 && job->place <= most &&
           job->nbytes >= 0 && job->nbytes <= most && job->slab > 0 && job->slab <= most &&
           job->width > 0 && job->nbytes % job->width == 0 &&
           (job->buffer.len >= job->nbytes || job->buffer.len - job->slab >= job->width);
}

/* Returns the bytes written, all of whole slabs; -1 if writing fails. */
static Py_ssize_t
copy_slabs(const Job *job, PyThreadState **thread)
{
    unsigned char *bytes = job->buffer.buf;
    Py_ssize_t done = 0;
    long long border = job->place - job->place % job->slab - job->place; /* from where it begins */

    while (done < job->nbytes) {
        Py_ssize_t end = job->nbytes;
        border += job->slab;
        if (border < end) /* where numbers are cut nearest to the border */
            end = (Py_ssize_t)(border - border % job->width);
        if (end <= done)
            continue;
        if (!read_whole(job->from, bytes, end - done, job->offset + done))
            break;
        reverse(bytes, end - done, job->width);
        if (!write_whole(job->to, bytes, end - done, job->place + done, thread))
            return -1;
        done = end;
    }
    return done;
}

static PyObject *
copy(PyObject *self, PyObject *args)
{
    Job job;

    if (!PyArg_ParseTuple(args, "iiLLnnnw*", &job.from, &job.to, &job.offset, &job.place,
                          &job.nbytes, &job.width, &job.slab, &job.buffer))
        return NULL;
    if (!is_possible(&job)) {
        PyBuffer_Release(&job.buffer);
        PyErr_SetString(PyExc_ValueError, "no such stretch, or the buffer is too small");
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    Py_ssize_t done = copy_slabs(&job, &thread);
    int error = errno;
    PyEval_RestoreThread(thread);
    PyBuffer_Release(&job.buffer);
    if (done >= 0)
        return PyLong_FromSsize_t(done);
    if (!PyErr_Occurred()) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
    }
    return NULL;
}

static PyMethodDef functions[] = {
    {"swap", swap, METH_VARARGS,
     "swap(buffer, width): reverse the bytes of every number of this width."},
    {"copy", copy, METH_VARARGS,
     "copy(source, target, offset, place, nbytes, width, slab, buffer): copy bytes from file to "
     "file, numbers of this width reversed, by writes that end next to multiples of `slab`. "
     "Returns how many were written: fewer if the rest cannot be read. OSError if writing fails."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_swap", "Bytes from file to file, in either byte order.", 0, functions,
    slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__swap(void)
{
    return PyModuleDef_Init(&definition);
}
