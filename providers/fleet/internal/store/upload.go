package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// partSize is the size of the parts of an upload, in bytes; one is in memory. S3 wants at least 5 MiB.
	partSize = 8 << 20
	// maxParts is how many parts an upload can have, by S3's rules: objects have at most 78 GiB, ten times the largest database of etcd.
	maxParts = 10000
	// abortTimeout is how long aborting an upload may take, after the context has ended.
	abortTimeout = 30 * time.Second
)

// Put implements Store. What fits into one part is one request, the rest a multipart upload, which is aborted if there is an error.
func (s *S3) Put(ctx context.Context, key string, content io.Reader) error {
	if err := checkKey(key); err != nil {
		return err
	}
	in := &whileLive{ctx: ctx, reader: content}
	if err := s.put(ctx, key, in); err != nil {
		return fmt.Errorf("storing %s: %w", key, in.or(s.typeOf(ctx, err)))
	}
	return nil
}

func (s *S3) put(ctx context.Context, key string, content io.Reader) error {
	buffer := make([]byte, partSize)
	part, last, err := readPart(content, buffer)
	if err != nil {
		return err
	}
	if !last {
		return s.upload(ctx, s.object(key), part, content)
	}
	// With the hash of the content the service verifies it, over HTTP, too.
	_, err = s.client.PutObject(ctx, s.bucket, s.object(key), bytes.NewReader(part), int64(len(part)), "", hash(part),
		minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true})
	return err
}

// contentType is the type of all objects.
const contentType = "application/octet-stream"

// upload uploads parts. The first is in the buffer.
func (s *S3) upload(ctx context.Context, object string, part []byte, content io.Reader) error {
	id, err := s.client.NewMultipartUpload(ctx, s.bucket, object, minio.PutObjectOptions{ContentType: contentType})
	if err != nil {
		return err
	}
	if err := s.parts(ctx, object, id, part, content); err != nil {
		// The context may have ended, but the parts cost money as long as they exist.
		abort, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		_ = s.client.AbortMultipartUpload(abort, s.bucket, object, id)
		return err
	}
	return nil
}

func (s *S3) parts(ctx context.Context, object, id string, part []byte, content io.Reader) error {
	var complete []minio.CompletePart
	buffer, last := part, false
	for number := 1; len(part) > 0; number++ {
		if number > maxParts {
			return fmt.Errorf("the content exceeds %d bytes", int64(maxParts)*partSize)
		}
		stored, err := s.client.PutObjectPart(ctx, s.bucket, object, id, number, bytes.NewReader(part), int64(len(part)),
			minio.PutObjectPartOptions{Sha256Hex: hash(part), DisableContentSha256: true})
		if err != nil {
			return err
		}
		complete = append(complete, minio.CompletePart{PartNumber: number, ETag: stored.ETag})
		if last {
			break
		}
		if part, last, err = readPart(content, buffer); err != nil {
			return err
		}
	}
	_, err := s.client.CompleteMultipartUpload(ctx, s.bucket, object, id, complete, minio.PutObjectOptions{})
	return err
}

// readPart reads until the buffer is full, and reports whether the content ends before. io.ReadFull would take a content that ends with
// io.ErrUnexpectedEOF, such as that of a connection that breaks, for a complete one.
func readPart(content io.Reader, buffer []byte) (part []byte, last bool, err error) {
	for size := 0; ; {
		n, err := content.Read(buffer[size:])
		size += n
		switch {
		case errors.Is(err, io.EOF):
			return buffer[:size], true, nil
		case err != nil:
			return nil, false, err
		case size == len(buffer):
			return buffer, false, nil
		}
	}
}

func hash(part []byte) string {
	sum := sha256.Sum256(part)
	return hex.EncodeToString(sum[:])
}
