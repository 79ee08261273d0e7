package main

import "io"

// stickyWriter is standard output. It keeps the first write error, because most verbs, and help, do not check for one.
type stickyWriter struct {
	io.Writer
	err error
}

func (o *stickyWriter) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}
