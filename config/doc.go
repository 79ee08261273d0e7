// Package config reads the table: one YAML file that says which jobs a service has and when they run.
//
// Load returns a whole table: every key is known, every value is checked, and every default is filled in. Two replicas
// with the same file and the same environment get the same Table with the same Hash. For a table with mistakes Load
// returns no Table but Problems: all of them, each with its line and column, the source line and, if one can be
// guessed, a hint. A caller that keeps its old table on an error therefore always has a whole one.
//
// Messages show no secret, within the limit that package strict names, which decodes the YAML.
//
// ParseTimer decodes a timer by the same description and as strictly. It refuses keys that reach beyond the app beside
// the replica.
//
// Parse is bounded as package strict says, by 1 MiB. The package has no goroutines and uses no network. It reads no
// file except the table, so a missing passwordFile or certificate shows when cmd opens it, and a missing file of a job
// when the job is called.
package config
