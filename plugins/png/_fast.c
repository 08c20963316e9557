/* The two inner loops of reading many small PNG files: taking the compressed pixels out of files
 * that are alike, and undoing row filters. Optional: without it Python and Pillow do the same.
 *
 * Nothing here says what is wrong with a file. Whatever is odd is left to the Python code, which
 * looks at that file again and has the words for it.
 */

#ifdef _WIN32
#error "POSIX only: the build goes on without this extension"
#endif

#define Py_LIMITED_API 0x030B0000 /* one build for Python 3.11 and all that follow */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------- CRC-32 */

enum { CRC_STEP = 16 }; /* bytes at once; their tables, 1 KiB each, stay in the L1 cache */

static uint32_t crc_tables[CRC_STEP][256];

static void
make_crc_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
        crc_tables[0][byte] = crc;
    }
    /* Table k is for a byte with k more bytes behind it in the same step. */
    for (int k = 1; k < CRC_STEP; k++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = crc_tables[k - 1][byte];
            crc_tables[k][byte] = crc >> 8 ^ crc_tables[0][crc & 255];
        }
}

static uint32_t
crc32_of(const uint8_t *data, size_t nbytes)
{
    uint32_t crc = 0xFFFFFFFF;
    for (; nbytes >= CRC_STEP; data += CRC_STEP, nbytes -= CRC_STEP) {
        uint32_t next = 0;
        for (int k = 0; k < 4; k++) /* the old checksum lies over the first four bytes */
            next ^= crc_tables[CRC_STEP - 1 - k][data[k] ^ (crc >> 8 * k & 255)];
        for (int k = 4; k < CRC_STEP; k++)
            next ^= crc_tables[CRC_STEP - 1 - k][data[k]];
        crc = next;
    }
    for (; nbytes; data++, nbytes--)
        crc = crc >> 8 ^ crc_tables[0][(crc ^ *data) & 255];
    return ~crc;
}

/* ---------------------------------------------------------------------- files that are alike */

enum {
    SMALL_FILE_BYTES = 1 << 16, /* as in stack.py */
    HEAD_BYTES = 8,             /* of a chunk: length and type */
    CRC_BYTES = 4,
};

/* What comes before and after the only IDAT chunk of such files. */
typedef struct {
    const char *lead, *tail;
    Py_ssize_t lead_bytes, tail_bytes;
} Lane;

static uint32_t
big_endian(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

/* Read a small regular file whole. Returns its size, -1 for any other file. */
static Py_ssize_t
read_file(const char *path, uint8_t *data)
{
    /* O_NONBLOCK: the open of a pipe must not wait for its writer. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return -1;
    struct stat status;
    Py_ssize_t size = -1;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)
        && status.st_size <= SMALL_FILE_BYTES) {
        size = read(file, data, SMALL_FILE_BYTES);
        if (size != status.st_size) /* somebody is writing it, or the read was cut short */
            size = -1;
    }
    close(file);
    return size;
}

/* Find the compressed pixels in a file of `size` bytes. Returns NULL unless everything around them
 * is as the lane says and their checksum is right. */
static const uint8_t *
find_pixels(const uint8_t *data, Py_ssize_t size, const Lane *lane, Py_ssize_t *nbytes)
{
    *nbytes = size - lane->lead_bytes - HEAD_BYTES - CRC_BYTES - lane->tail_bytes;
    if (*nbytes < 0)
        return NULL;
    const uint8_t *head = data + lane->lead_bytes;
    const uint8_t *pixels = head + HEAD_BYTES;
    const uint8_t *crc = pixels + *nbytes;
    if (memcmp(data, lane->lead, lane->lead_bytes) != 0
        || big_endian(head) != *nbytes
        || memcmp(head + 4, "IDAT", 4) != 0
        || memcmp(crc + CRC_BYTES, lane->tail, lane->tail_bytes) != 0
        || big_endian(crc) != crc32_of(head + 4, 4 + *nbytes))
        return NULL;
    return pixels;
}

/* Return the compressed pixels of one file, None if it is odd. */
static PyObject *
read_one(PyObject *path, const Lane *lane, uint8_t *data)
{
    PyObject *name;
    if (!PyUnicode_FSConverter(path, &name)) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) /* which is what a NUL in the name gives */
            return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    Py_ssize_t nbytes, size = read_file(PyBytes_AsString(name), data);
    Py_DECREF(name);
    const uint8_t *pixels = find_pixels(data, size, lane, &nbytes);
    if (pixels == NULL)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)pixels, nbytes);
}

static PyObject *
read_alike(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *paths;
    Lane lane;
    if (!PyArg_ParseTuple(args, "O!y#y#", &PyList_Type, &paths, &lane.lead, &lane.lead_bytes,
                          &lane.tail, &lane.tail_bytes))
        return NULL;
    uint8_t *data = PyMem_Malloc(SMALL_FILE_BYTES);
    PyObject *found = data ? PyList_New(0) : PyErr_NoMemory();
    for (Py_ssize_t i = 0; found != NULL && i < PyList_Size(paths); i++) {
        PyObject *pixels = read_one(PyList_GetItem(paths, i), &lane, data);
        if (pixels == NULL || PyList_Append(found, pixels) < 0)
            Py_CLEAR(found);
        Py_XDECREF(pixels);
    }
    PyMem_Free(data);
    return found;
}

/* ---------------------------------------------------------------------------------- row filters */

enum { NONE, SUB, UP, AVERAGE, PAETH, FILTERS };

/* The predictor of clause 9.4 for left, above and upper left. The same value as there, in a form
 * without branches: on noise the processor guesses half of them wrong. */
static inline int
paeth(int a, int b, int c)
{
    int low = a < b ? a : b;
    int high = a < b ? b : a;
    int distance = 3 * c - (a + b);
    int nearest = high <= distance ? low : c;
    return distance <= low ? high : nearest;
}

/* Undo the filter of one row; `pixel` is the distance of a byte to the one it is compared with. */
static void
unfilter_row(int filter, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t nbytes,
             size_t pixel)
{
    size_t i = 0;
    size_t first = pixel < nbytes ? pixel : nbytes; /* the first pixel: there is 0 left of it */
    switch (filter) {
    case NONE:
        memcpy(out, in, nbytes);
        break;
    case SUB:
        memcpy(out, in, first);
        for (i = first; i < nbytes; i++)
            out[i] = in[i] + out[i - pixel];
        break;
    case UP:
        for (; i < nbytes; i++)
            out[i] = in[i] + above[i];
        break;
    case AVERAGE:
        for (; i < first; i++)
            out[i] = in[i] + above[i] / 2;
        for (; i < nbytes; i++)
            out[i] = in[i] + (out[i - pixel] + above[i]) / 2;
        break;
    case PAETH:
        for (; i < first; i++)
            out[i] = in[i] + above[i];
        for (; i < nbytes; i++)
            out[i] = in[i] + paeth(out[i - pixel], above[i], above[i - pixel]);
        break;
    }
}

/* Undo the filters of an image; `above` is a row of zeros. False if one of them is unknown. */
static int
unfilter_image(const uint8_t *in, const uint8_t *above, uint8_t *out, size_t height,
               size_t row_bytes, size_t pixel)
{
    for (; height; height--) {
        if (*in >= FILTERS)
            return 0;
        unfilter_row(*in, in + 1, above, out, row_bytes, pixel);
        above = out;
        in += 1 + row_bytes;
        out += row_bytes;
    }
    return 1;
}

/* Undo the filters of all images in `streams`, from byte `start` of each. Returns -1 with an
 * exception set, 0 if a filter is unknown, else 1. */
static int
unfilter_all(PyObject *streams, Py_ssize_t start, Py_ssize_t pixel, const Py_buffer *images)
{
    /* An image fits the memory, so that twice its size still fits a size_t. */
    size_t height = images->shape[1], row_bytes = images->shape[2];
    size_t filtered_bytes = height * (1 + row_bytes);
    uint8_t *zeros = PyMem_Calloc(row_bytes, 1);
    if (zeros == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int result = 1;
    uint8_t *out = images->buf;
    for (Py_ssize_t i = 0; result == 1 && i < images->shape[0]; i++, out += height * row_bytes) {
        PyObject *item = PyList_GetItem(streams, i);
        Py_buffer stream;
        if (item == NULL || PyObject_GetBuffer(item, &stream, PyBUF_SIMPLE) < 0) {
            result = -1;
        } else if (stream.len < start || (size_t)(stream.len - start) < filtered_bytes) {
            PyErr_SetString(PyExc_ValueError, "a stream is too short");
            PyBuffer_Release(&stream);
            result = -1;
        } else {
            const uint8_t *in = (const uint8_t *)stream.buf + start;
            result = unfilter_image(in, zeros, out, height, row_bytes, pixel);
            PyBuffer_Release(&stream);
        }
    }
    PyMem_Free(zeros);
    return result;
}

static PyObject *
unfilter(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *streams, *array;
    Py_ssize_t start, pixel;
    Py_buffer images;
    if (!PyArg_ParseTuple(args, "O!nnO", &PyList_Type, &streams, &start, &pixel, &array)
        || PyObject_GetBuffer(array, &images, PyBUF_CONTIG) < 0)
        return NULL;
    int result = -1;
    if (images.ndim == 3 && images.itemsize == 1 && images.shape[2] > 0 && start >= 0 && pixel > 0)
        result = unfilter_all(streams, start, pixel, &images);
    else
        PyErr_SetString(PyExc_ValueError, "not the place for rows of bytes");
    PyBuffer_Release(&images);
    return result < 0 ? NULL : PyBool_FromLong(result);
}

/* -------------------------------------------------------------------------------------- module */

static PyMethodDef methods[] = {
    {"read_alike", read_alike, METH_VARARGS, "See _fast.pyi."},
    {"unfilter", unfilter, METH_VARARGS, "See _fast.pyi."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_fast",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__fast(void)
{
    make_crc_tables();
    return PyModuleDef_Init(&definition);
}
