package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// errStop ends a list whose rest is not needed.
var errStop = errors.New("the rest is not needed")

// eachError is an error of the caller's function: it is not about the store.
type eachError struct{ error }

// Unwrap returns the error that is wrapped.
func (e *eachError) Unwrap() error { return e.error }

// listed returns the error of a list.
func listed(prefix string, err error, typeOf func(error) error) error {
	var each *eachError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &each):
		return each.error
	default:
		return fmt.Errorf("listing objects with prefix %q: %w", prefix, typeOf(err))
	}
}

// readBack compares the object that Check has written with its key, which is its content, too.
func readBack(ctx context.Context, key string, get func(context.Context, string) (io.ReadCloser, error)) error {
	content, err := get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading an object to check the store: %w", err)
	}
	defer content.Close()
	got, err := io.ReadAll(io.LimitReader(content, int64(len(key))+1))
	if err != nil {
		return fmt.Errorf("reading an object to check the store: %w", err)
	}
	if !bytes.Equal(got, []byte(key)) {
		return errors.New("the store returns other content than what was stored")
	}
	return nil
}

// whileLive is a reader that ends with its context. It keeps its error, which is not about the store.
type whileLive struct {
	ctx    context.Context //nolint:containedctx // io.Reader has no parameter for it
	reader io.Reader
	err    error
}

// Read implements io.Reader.
func (r *whileLive) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		r.err = context.Cause(r.ctx)
		return 0, r.err
	}
	n, err := r.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// or returns the reader's error, if it has one, and err otherwise.
func (r *whileLive) or(err error) error {
	if r.err != nil {
		return r.err
	}
	return err
}
