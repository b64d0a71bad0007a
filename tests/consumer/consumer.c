/* SPDX-License-Identifier: BSD-3-Clause */
#include <match/tagline.h>
#include <stdio.h>

int main(void) {
  tagline_matcher* matcher = NULL;
  tagline_options options = TAGLINE_OPTIONS_DEFAULT;
  options.queue = "linear"; /* takes memory for its first entry */
  if (tagline_create(&options, &matcher) != TAGLINE_OK) {
    fprintf(stderr, "%s\n", tagline_error_message());
    return 1;
  }
  int receive = 0;
  void* out = NULL;
  const tagline_envelope any = {0, TAGLINE_ANY_SOURCE, 7};
  const tagline_envelope message = {0, 3, 7};
  const int matched = tagline_post_receive(matcher, any, &receive, &out, NULL) == TAGLINE_QUEUED &&
                      tagline_arrive(matcher, message, NULL, &out) == TAGLINE_MATCHED &&
                      out == &receive;
  tagline_destroy(matcher);
  printf("tagline %s: %s\n", tagline_version(), matched ? "matched" : "not matched");
  return matched ? 0 : 1;
}
