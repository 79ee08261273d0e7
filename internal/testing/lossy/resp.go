package lossy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// readRequest reads one request, an array of bulk strings: its words, and the bytes as they came.
func readRequest(r *bufio.Reader) (words []string, raw []byte, err error) {
	line, err := readLine(r)
	if err != nil {
		return nil, nil, err
	}
	if line[0] != '*' {
		return nil, nil, fmt.Errorf("reading a request: it begins with %q, and inline commands are not understood",
			line)
	}
	n, err := length(line)
	if err != nil {
		return nil, nil, err
	}
	raw = append(raw, line...)
	for range n {
		var item []byte
		if item, err = readReply(r); err != nil {
			return nil, nil, err
		}
		raw = append(raw, item...)
		if _, text, ok := bytes.Cut(item, []byte("\r\n")); ok {
			item = bytes.TrimSuffix(text, []byte("\r\n"))
		}
		words = append(words, string(item))
	}
	return words, raw, nil
}

// readReply reads one value of any type, in RESP2 or RESP3, as raw bytes.
func readReply(r *bufio.Reader) ([]byte, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	raw := append([]byte(nil), line...)
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return raw, nil
	case '$', '=', '!':
		n, err := length(line)
		if err != nil || n < 0 {
			return raw, err
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, err
		}
		return append(raw, body...), nil
	case '*', '~', '>', '%', '|':
		n, err := length(line)
		if err != nil {
			return nil, err
		}
		if line[0] == '%' || line[0] == '|' {
			n *= 2
		}
		if line[0] == '|' {
			n++ // an attribute stands before the value that it describes
		}
		for range max(n, 0) {
			item, err := readReply(r)
			if err != nil {
				return nil, err
			}
			raw = append(raw, item...)
		}
		return raw, nil
	}
	return nil, fmt.Errorf("reading a reply: unknown type %q", line)
}

func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("reading the protocol: short line %q", line)
	}
	return line, nil
}

func length(line []byte) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil {
		return 0, fmt.Errorf("reading the protocol: length: %w", err)
	}
	return n, nil
}
