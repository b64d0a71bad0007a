// SPDX-License-Identifier: BSD-3-Clause
// Derived datatypes on both sides of a message. Every layout is sent to every other
// of the same signature; what arrives must equal the sender's packed data unpacked
// with the receiver's layout, and bytes in the gaps must stay untouched.
#include "program.h"

enum { kInts = 24 };  // Every layout's signature is a multiple of 24 ints.

struct layout {
  const char* name;
  MPI_Datatype type;
};

static struct layout layouts[16];
static int layout_count = 0;

static void add(const char* name, MPI_Datatype type) {
  MPI_Type_commit(&type);
  int bytes;
  MPI_Type_size(type, &bytes);
  EXPECT(bytes == kInts * (int)sizeof(int), "%s to hold %d ints", name, kInts);
  layouts[layout_count++] = (struct layout){name, type};
}

static void build_layouts(void) {
  MPI_Datatype type, inner, resized;
  MPI_Type_contiguous(kInts, MPI_INT, &type);
  add("contiguous", type);

  MPI_Type_vector(8, 3, 5, MPI_INT, &type);
  add("vector", type);

  MPI_Type_vector(kInts, 1, -2, MPI_INT, &type);
  add("vector with negative stride", type);

  const int lengths[] = {1, 0, 7, 4, 12}, places[] = {0, 2, 3, 20, 40};
  MPI_Type_indexed(5, lengths, places, MPI_INT, &type);
  add("indexed", type);

  int backwards[kInts];
  for (int i = 0; i < kInts; ++i) backwards[i] = 2 * (kInts - i);
  MPI_Type_create_indexed_block(kInts, 1, backwards, MPI_INT, &type);
  add("indexed block, backwards", type);

  MPI_Type_contiguous(kInts, MPI_INT, &inner);
  MPI_Type_create_resized(inner, -16, 160, &type);
  add("resized with negative lower bound", type);
  MPI_Type_free(&inner);

  const int sizes[] = {6, 7, 8}, part[] = {2, 3, 4}, starts[] = {1, 2, 3};
  MPI_Type_create_subarray(3, sizes, part, starts, MPI_ORDER_C, MPI_INT, &type);
  add("subarray", type);

  MPI_Type_vector(2, 2, 3, MPI_INT, &inner);
  MPI_Type_create_resized(inner, 0, 28, &resized);
  MPI_Type_create_hvector(6, 1, 32, resized, &type);
  add("vector of vectors", type);
  MPI_Type_free(&inner);
  MPI_Type_free(&resized);

  const MPI_Aint bytes_away[] = {-40, 0, 100};
  const int blocks[] = {3, 1, 1};
  MPI_Datatype members[3] = {MPI_INT, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
  MPI_Type_vector(5, 1, 2, MPI_INT, &members[1]);
  MPI_Type_contiguous(16, MPI_INT, &members[2]);
  MPI_Type_create_struct(3, blocks, bytes_away, members, &type);
  add("struct with negative displacement", type);
  MPI_Type_free(&members[1]);
  MPI_Type_free(&members[2]);
}

// Memory that holds `count` elements of a type, whatever its bounds.
struct region {
  char* memory;
  char* origin;  // the address for MPI calls
  size_t bytes;
};

static struct region make_region(MPI_Datatype type, int count, unsigned char value) {
  MPI_Aint lower, extent, true_lower, true_extent;
  MPI_Type_get_extent(type, &lower, &extent);
  MPI_Type_get_true_extent(type, &true_lower, &true_extent);
  const MPI_Aint last = extent * (count - 1);
  const MPI_Aint below = (last < 0 ? last : 0) + true_lower;
  const MPI_Aint above = (last > 0 ? last : 0) + true_lower + true_extent;
  const MPI_Aint first = below < 0 ? -below : 0;
  struct region region = {NULL, NULL, (size_t)(first + (above > 0 ? above : 0)) + 64};
  region.memory = allocate(region.bytes);
  region.origin = region.memory + first;
  memset(region.memory, value, region.bytes);
  return region;
}

static void transfer(const struct layout* from, const struct layout* to, int count, int tag) {
  const int partner = partner_rank();
  const int bytes = count * kInts * (int)sizeof(int);
  struct region source = make_region(from->type, count, 0x11);
  struct region received = make_region(to->type, count, 0xEE);
  struct region reference = make_region(to->type, count, 0xEE);

  fill(source.memory, source.bytes, (uint64_t)(tag + partner));
  char* packed = allocate((size_t)bytes);
  int position = 0;
  MPI_Pack(source.origin, count, from->type, packed, bytes, &position, MPI_COMM_WORLD);
  position = 0;
  MPI_Unpack(packed, bytes, &position, reference.origin, count, to->type, MPI_COMM_WORLD);

  fill(source.memory, source.bytes, (uint64_t)(tag + world_rank));
  MPI_Request send;
  MPI_Status status;
  MPI_Isend(source.origin, count, from->type, partner, tag, MPI_COMM_WORLD, &send);
  MPI_Recv(received.origin, count, to->type, partner, tag, MPI_COMM_WORLD, &status);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  EXPECT_STATUS(status, partner, tag, bytes);
  EXPECT(memcmp(received.memory, reference.memory, received.bytes) == 0,
         "%d x %s received as %s to be unpacked in place, gaps untouched", count, from->name,
         to->name);
  free(packed);
  free(reference.memory);
  free(received.memory);
  free(source.memory);
}

// Reversed columns, checked by hand: independent of MPI_Pack.
static void transposed_matrix(int order) {
  const int partner = partner_rank();
  MPI_Datatype column, columns;
  MPI_Type_vector(order, 1, order, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &columns);
  MPI_Type_commit(&columns);
  int* matrix = allocate((size_t)(order * order) * sizeof(int));
  int* transpose = allocate((size_t)(order * order) * sizeof(int));
  for (int i = 0; i < order * order; ++i) matrix[i] = i + world_rank;
  MPI_Sendrecv(matrix, order * order, MPI_INT, partner, 1, transpose, order, columns, partner, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < order; ++i)
    for (int j = 0; j < order; ++j)
      EXPECT(transpose[j * order + i] == i * order + j + partner,
             "row %d column %d to be %d, got %d", j, i, i * order + j + partner,
             transpose[j * order + i]);
  free(transpose);
  free(matrix);
  MPI_Type_free(&column);
  MPI_Type_free(&columns);
}

struct record {
  char letter;
  double value;
  short small[3];
};

static void mixed_struct(int count) {
  const int partner = partner_rank();
  const int blocks[] = {1, 1, 3};
  const MPI_Aint places[] = {offsetof(struct record, letter), offsetof(struct record, value),
                             offsetof(struct record, small)};
  const MPI_Datatype members[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
  MPI_Datatype packed, type;
  MPI_Type_create_struct(3, blocks, places, members, &packed);
  MPI_Type_create_resized(packed, 0, sizeof(struct record), &type);
  MPI_Type_commit(&type);
  struct record* mine = allocate((size_t)count * sizeof *mine);
  struct record* theirs = allocate((size_t)(count + 5) * sizeof *theirs);
  for (int i = 0; i < count; ++i)
    mine[i] = (struct record){(char)(i + world_rank),
                              i * 0.5 + world_rank,
                              {(short)i, (short)(i + 1), (short)world_rank}};
  MPI_Status status;
  int items = -1, elements = -1;
  MPI_Sendrecv(mine, count, type, partner, 2, theirs, count + 5, type, partner, 2, MPI_COMM_WORLD,
               &status);
  MPI_Get_count(&status, type, &items);
  MPI_Get_elements(&status, type, &elements);
  EXPECT(items == count && elements == 5 * count, "%d items and %d elements, got %d and %d", count,
         5 * count, items, elements);
  for (int i = 0; i < count; ++i)
    EXPECT(theirs[i].letter == (char)(i + partner) && theirs[i].value == i * 0.5 + partner &&
               theirs[i].small[0] == (short)i && theirs[i].small[1] == (short)(i + 1) &&
               theirs[i].small[2] == partner,
           "record %d as sent", i);

  // A message that ends inside an element has elements but no count of items.
  char letter = 'x';
  MPI_Sendrecv(&letter, 1, MPI_CHAR, partner, 3, theirs, 1, type, partner, 3, MPI_COMM_WORLD,
               &status);
  MPI_Get_count(&status, type, &items);
  MPI_Get_elements(&status, type, &elements);
  EXPECT(items == MPI_UNDEFINED && elements == 1, "an undefined count and 1 element, got %d and %d",
         items, elements);
  free(theirs);
  free(mine);
  MPI_Type_free(&packed);
  MPI_Type_free(&type);
}

// A freed type stays in use until its messages are complete.
static void freed_while_in_use(int count) {
  const int partner = partner_rank();
  MPI_Datatype type;
  MPI_Type_vector(count, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  int* mine = allocate((size_t)count * 2 * sizeof(int));
  int* theirs = allocate((size_t)count * 2 * sizeof(int));
  for (int i = 0; i < 2 * count; ++i) mine[i] = i + world_rank, theirs[i] = -1;
  MPI_Request requests[2];
  MPI_Irecv(theirs, 1, type, partner, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Issend(mine, 1, type, partner, 4, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&type);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 2 * count - 1; ++i) {
    const int expected = i % 2 == 0 ? i + partner : -1;
    EXPECT(theirs[i] == expected, "%d at %d, got %d", expected, i, theirs[i]);
  }
  free(theirs);
  free(mine);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  // Messages of more than 43 elements are several fragments.
  const long most_elements = argument(argc, argv, "most_elements", 6000);
  build_layouts();
  static const int kCounts[] = {1, 5, 41, 43, 700, 6000};  // 96 B .. 576 KiB
  for (size_t c = 0; c < sizeof kCounts / sizeof kCounts[0]; ++c)
    for (int i = 0; i < layout_count && kCounts[c] <= most_elements; ++i)
      for (int j = 0; j < layout_count; ++j)
        transfer(&layouts[i], &layouts[j], kCounts[c], i * layout_count + j);
  for (int i = 0; i < layout_count; ++i) MPI_Type_free(&layouts[i].type);
  transposed_matrix(3);
  transposed_matrix(30);
  mixed_struct(1);
  mixed_struct(100);
  freed_while_in_use(10);
  if (most_elements > 1000) {
    transposed_matrix(600);
    mixed_struct(30000);
    freed_while_in_use(200000);
  }
  return finish();
}
