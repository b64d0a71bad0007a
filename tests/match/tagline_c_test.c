/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract from C11: compiles with a C compiler alone and follows one message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "match/tagline.h"

#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "line %d: expected %s\n", __LINE__, #condition); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

static void count(void* user, tagline_side side, tagline_envelope envelope, void* cookie) {
  (void)envelope;
  (void)cookie;
  ((int*)user)[side]++;
}

int main(void) {
  int receive = 1, message = 2, other = 3;
  void* out = NULL;
  tagline_handle handle = 0;
  tagline_envelope found = {0, 0, 0};
  tagline_statistics statistics;
  int counted[2] = {0, 0};

  tagline_options options = TAGLINE_OPTIONS_DEFAULT;
  tagline_matcher* matcher = NULL;
  options.queue = "linear";
  CHECK(tagline_create(&options, &matcher) == TAGLINE_OK);
  CHECK(strcmp(tagline_matcher_queue(matcher), "linear") == 0);
  CHECK(tagline_matcher_isa(matcher) != NULL);

  const tagline_envelope any = {5, TAGLINE_ANY_SOURCE, TAGLINE_ANY_TAG};
  const tagline_envelope exact = {5, 1, 42};
  CHECK(tagline_post_receive(matcher, any, &receive, &out, &handle) == TAGLINE_QUEUED);
  CHECK(handle != 0 && out == NULL);
  CHECK(tagline_arrive(matcher, exact, &message, &out) == TAGLINE_MATCHED);
  CHECK(out == &receive);
  CHECK(tagline_arrive(matcher, exact, &message, &out) == TAGLINE_QUEUED);
  CHECK(tagline_probe(matcher, any, &out, &found) == TAGLINE_MATCHED);
  CHECK(out == &message && found.source == 1 && found.tag == 42);

  CHECK(tagline_claim(matcher, exact, &out, NULL) == TAGLINE_MATCHED);
  CHECK(tagline_claim(matcher, exact, &out, NULL) == TAGLINE_NOT_FOUND);
  CHECK(tagline_append_receive(matcher, exact, &other, &handle) == TAGLINE_QUEUED);
  CHECK(tagline_match_message(matcher, exact, &out) == TAGLINE_MATCHED && out == &other);
  CHECK(tagline_append_message(matcher, exact, &message) == TAGLINE_QUEUED);
  CHECK(tagline_append_receive(matcher, any, &receive, &handle) == TAGLINE_QUEUED);
  CHECK(tagline_cancel_handle(matcher, 5, handle) == TAGLINE_OK);
  CHECK(tagline_append_receive(matcher, any, &receive, NULL) == TAGLINE_QUEUED);
  CHECK(tagline_cancel_receive(matcher, any, &receive) == TAGLINE_OK);
  CHECK(tagline_append_receive(matcher, exact, &receive, NULL) == TAGLINE_QUEUED);

  tagline_for_each(matcher, count, counted);
  CHECK(counted[TAGLINE_POSTED] == 1 && counted[TAGLINE_UNEXPECTED] == 1);
  CHECK(tagline_drop_source(matcher, 5, 1, count, counted) == 2);
  CHECK(tagline_drop_context(matcher, 5, count, counted) == 0);
  CHECK(counted[TAGLINE_POSTED] == 2 && counted[TAGLINE_UNEXPECTED] == 2);
  tagline_get_statistics(matcher, &statistics);
  CHECK(statistics.posted.length == 0 && statistics.unexpected.length == 0);

  CHECK(tagline_arrive(matcher, any, &message, &out) == TAGLINE_INVALID);
  CHECK(strlen(tagline_error_message()) > 0);
  CHECK(strlen(tagline_version()) > 0);
  tagline_destroy(matcher);
  tagline_destroy(NULL);
  puts("the C contract holds");
  return 0;
}
