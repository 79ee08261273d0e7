// Package budget holds the size of the product. Its test counts the code that the binary is linked from, and what
// operators have to learn. It compares each figure with its limit in limits.txt.
//
// Limits only go down: the test fails above a limit, so that nothing grows in passing, and below one, so that what was
// gained is kept.
package budget
