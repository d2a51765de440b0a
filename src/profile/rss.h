/* profile/rss.h -- the process's resident memory, as Linux accounts it.
 *
 * The high-water mark is of the whole process and would remember every run
 * before; it can only be trusted after rss_reset() succeeded.
 */
#ifndef PROFILE_RSS_H
#define PROFILE_RSS_H

#include <stdbool.h>
#include <stdint.h>

bool    rss_reset(void); /* false: this system cannot forget the mark */
int64_t rss_peak(void);  /* bytes since the last reset; -1: unknown */

#endif
