//go:build !linux

package instance

// Hold returns ErrUnsupported.
func Hold(string, string) (*Instance, error) { return nil, ErrUnsupported }
