package main

import "io"

// outlet is standard output, which keeps the first error of writing to it: most verbs, and help, do not look at it.
type outlet struct {
	io.Writer
	err error
}

func (o *outlet) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}
