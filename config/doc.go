// Package config reads the table: one YAML file that says which jobs a service has and when they run.
//
// A table that Load returns is whole: every key was known, every value was checked, every default is filled in, and
// two replicas with the same file and the same environment get the same Table with the same Hash. A table with
// anything wrong in it gives no Table but Problems: all of them, each with its line and column, the source line and,
// where one can be guessed, the remedy. Nothing is half accepted, so a caller that keeps its old table on an error
// always has one that is whole.
//
// Messages show no secret. Package strict, which decodes the YAML, never repeats values of variables. It shows the names
// of keys and the values of keys that hold no secret, and writes *** for everything else. The limit: a secret that stands
// where none belongs, as the name of a job or as a key, is shown like any other name.
//
// Jobs and timers that the API is given are decoded by the same description with the same strictness. Keys that reach
// beyond the app beside the replica are refused: see ParseJob and ParseTimer.
//
// Parse is bounded: a file of more than 1 MiB, nesting deeper than 64 and aliases that expand beyond a quarter of a
// million values are refused before they cost time. The package has no goroutines and uses no network; it looks at no
// file but the table, so a passwordFile or certificate that does not exist is found by who opens it.
package config
