//go:build !linux

package machine

// Reader reads the load.
type Reader struct{}

// New returns a Reader.
func New() *Reader { return &Reader{} }

// Read fails.
func (*Reader) Read() (Load, error) { return Load{}, ErrUnknown }

// MemoryLimit is 0: it is not known here.
func (*Reader) MemoryLimit() int64 { return 0 }
