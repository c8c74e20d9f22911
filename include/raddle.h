/* Marks for raddle. A program that uses them also builds and runs without raddle: the
 * functions are weak, and without raddle's runtime nobody is called.
 *
 *     RADDLE_UNIT_BEGIN();
 *     balance = balance - sum;      what is meant to happen as one
 *     RADDLE_UNIT_END();
 *
 * raddle takes the accesses between the two as belonging together, as it does those of a
 * critical section, and looks for orders in which another thread comes between them. Marks
 * nest. They are no locks: nobody is kept out.
 */
#ifndef RADDLE_H
#define RADDLE_H

#ifdef __cplusplus
extern "C" {
#endif

void raddle_unit_begin(void) __attribute__((weak));
void raddle_unit_end(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#define RADDLE_UNIT_BEGIN() ((void)(raddle_unit_begin && (raddle_unit_begin(), 1)))
#define RADDLE_UNIT_END() ((void)(raddle_unit_end && (raddle_unit_end(), 1)))

#endif
