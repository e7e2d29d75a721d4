package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// S3Options describe a bucket and how to access it.
type S3Options struct {
	// Endpoint is the URL of the service without a path, such as "https://s3.eu-central-1.amazonaws.com". HTTP is permitted: archives are
	// encrypted, and credentials never sent; but others can read URLs.
	Endpoint string
	Bucket   string
	// Prefix is put before all keys, with a slash between. Defaults to none.
	Prefix string
	// Region defaults to the one in the endpoint of AWS, and for others to what the service reports.
	Region string
	// ForcePathStyle puts the bucket in the path of URLs instead of the host name, as most services other than AWS expect.
	ForcePathStyle bool
	// CABundle has certificates as PEM to verify the service with, instead of those of the system.
	CABundle []byte
	// AccessKeyID, SecretAccessKey and SessionToken are the credentials; the token is for temporary ones.
	AccessKeyID, SecretAccessKey, SessionToken string
	// AllowLocal allows endpoints whose addresses are loopback, link-local or multicast ones. Others get ErrAddress.
	AllowLocal bool
	// Idle is how long a request may make no progress. Defaults to 1 minute.
	Idle time.Duration

	// attempts is how often a request is sent if the service is unreachable or busy. Defaults to 3; controllers retry later with backoff.
	attempts int
}

// Defaults of S3Options. Services complete large uploads within seconds.
const (
	defaultIdle     = time.Minute
	defaultAttempts = 3
)

// S3 keeps objects in a bucket. Requests are signed, so the secrets are never sent; redirects are not followed.
//
// It uses minio-go. The SDK of AWS has several times as many packages, follows redirects, sends checksums by default that other services
// reject, and its upload manager keeps several parts in memory.
type S3 struct {
	client         *minio.Core
	bucket, prefix string
	secrets        []string
}

// NewS3 returns a Store in a bucket. It sends no request: errors are about the options.
func NewS3(options S3Options) (*S3, error) {
	endpoint, err := url.Parse(options.Endpoint)
	switch {
	case err != nil || (endpoint.Scheme != "https" && endpoint.Scheme != "http") || endpoint.Host == "" || endpoint.User != nil ||
		strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" || endpoint.Fragment != "":
		return nil, errors.New("the endpoint is invalid: must be like https://s3.example.com:9000, without path and credentials")
	case options.AccessKeyID == "" || options.SecretAccessKey == "":
		return nil, errors.New("the access key ID and the secret access key must be set")
	case options.Prefix != "" && !ValidKey(options.Prefix):
		return nil, fmt.Errorf("the prefix %q is invalid", options.Prefix)
	}
	if err := s3utils.CheckValidBucketNameStrict(options.Bucket); err != nil {
		return nil, fmt.Errorf("the bucket %q is invalid: %w", options.Bucket, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(options.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(options.CABundle) {
			return nil, errors.New("the CA bundle has no certificate as PEM")
		}
	}
	if options.Idle == 0 {
		options.Idle = defaultIdle
	}
	if options.attempts == 0 {
		options.attempts = defaultAttempts
	}
	lookup := minio.BucketLookupDNS
	if options.ForcePathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(options.AccessKeyID, options.SecretAccessKey, options.SessionToken),
		Secure:       endpoint.Scheme == "https",
		Transport:    newTransport(options.Idle, config, options.AllowLocal),
		Region:       options.Region,
		BucketLookup: lookup,
		MaxRetries:   options.attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("the endpoint is invalid: %w", err)
	}
	secrets := []string{options.SecretAccessKey}
	if options.SessionToken != "" {
		secrets = append(secrets, options.SessionToken)
	}
	return &S3{client: client, bucket: options.Bucket, prefix: options.Prefix, secrets: secrets}, nil
}

// object returns the name of an object in the bucket.
func (s *S3) object(key string) string { return path.Join(s.prefix, key) }

// Get implements Store.
func (s *S3) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return s.get(ctx, key)
}

func (s *S3) get(ctx context.Context, key string) (io.ReadCloser, error) {
	body, _, _, err := s.client.GetObject(ctx, s.bucket, s.object(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, s.typeOf(ctx, err))
	}
	return &download{ctx: ctx, ReadCloser: body, store: s, key: key}, nil
}

// download is the content of an object. Connections that break are errors of the store.
type download struct {
	ctx context.Context //nolint:containedctx // io.Reader has no parameter for it
	io.ReadCloser
	store *S3
	key   string
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a wrapped one is no end
		err = fmt.Errorf("reading %s: %w", d.key, d.store.typeOf(d.ctx, err))
	}
	return n, err
}

// List implements Store. It reads 1,000 objects per request.
func (s *S3) List(ctx context.Context, prefix string, each func(Entry) error) error {
	// The client's goroutine ends with its context.
	listing, cancel := context.WithCancel(ctx)
	defer cancel()
	before := ""
	if s.prefix != "" {
		before = s.prefix + "/"
	}
	for object := range s.client.Client.ListObjects(listing, s.bucket, minio.ListObjectsOptions{Prefix: before + prefix, Recursive: true}) {
		if object.Err != nil {
			return listed(prefix, object.Err, func(err error) error { return s.typeOf(ctx, err) })
		}
		key, found := strings.CutPrefix(object.Key, before)
		if !found || !strings.HasPrefix(key, prefix) || !ValidKey(key) {
			continue
		}
		if err := each(Entry{Key: key, Size: object.Size, Modified: object.LastModified}); err != nil {
			return err
		}
	}
	// The client may end the list without an error when its context ends.
	return ctx.Err()
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return s.delete(ctx, key)
}

func (s *S3) delete(ctx context.Context, key string) error {
	err := s.client.RemoveObject(ctx, s.bucket, s.object(key), minio.RemoveObjectOptions{})
	if err = s.typeOf(ctx, err); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}

// URL implements Store. Without a region in the options, the first one needs a request.
func (s *S3) URL(ctx context.Context, key string, lifetime time.Duration) (string, error) {
	if err := errors.Join(checkKey(key), checkLifetime(lifetime)); err != nil {
		return "", err
	}
	signed, err := s.client.PresignedGetObject(ctx, s.bucket, s.object(key), lifetime, nil)
	if err != nil {
		return "", fmt.Errorf("signing a URL of %s: %w", key, s.typeOf(ctx, err))
	}
	return signed.String(), nil
}

// Check implements Store.
func (s *S3) Check(ctx context.Context) error {
	if err := s.List(ctx, "", func(Entry) error { return errStop }); err != nil && !errors.Is(err, errStop) {
		return err
	}
	key := newCheckKey()
	if err := s.put(ctx, key, strings.NewReader(key)); err != nil {
		return fmt.Errorf("writing an object to check the store: %w", s.typeOf(ctx, err))
	}
	// The object is deleted in any case. With a version or a retention of objects, services keep it.
	return errors.Join(readBack(ctx, key, s.get), s.delete(context.WithoutCancel(ctx), key))
}

// Clean implements Store.
func (s *S3) Clean(ctx context.Context, before time.Time) error {
	listing, cancel := context.WithCancel(ctx)
	defer cancel()
	prefix := ""
	if s.prefix != "" {
		prefix = s.prefix + "/"
	}
	for upload := range s.client.ListIncompleteUploads(listing, s.bucket, prefix, true) {
		if err := s.typeOf(ctx, upload.Err); errors.Is(err, ErrNotFound) {
			return nil // how some services report that there are none
		} else if err != nil {
			return fmt.Errorf("listing incomplete uploads: %w", err)
		}
		if !upload.Initiated.Before(before) || !ValidKey(strings.TrimPrefix(upload.Key, prefix)) {
			continue
		}
		err := s.typeOf(ctx, s.client.AbortMultipartUpload(ctx, s.bucket, upload.Key, upload.UploadID))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("aborting an incomplete upload of %s: %w", strings.TrimPrefix(upload.Key, prefix), err)
		}
	}
	return ctx.Err()
}
