package store

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/minio/minio-go/v7"
)

// kinds are the types of errors, by name.
var kinds = map[string]error{
	"credentials": ErrCredentials, "no bucket": ErrNoBucket, "full": ErrFull, "unreachable": ErrUnreachable, "not found": ErrNotFound,
}

func kind(err error) string {
	for name, e := range kinds {
		if errors.Is(err, e) {
			return name
		}
	}
	return ""
}

func TestCredentials(t *testing.T) {
	tests := []struct {
		reason string
		change func(o *S3Options)
		want   string
	}{
		{"right ones", func(*S3Options) {}, ""},
		{"an unknown access key", func(o *S3Options) { o.AccessKeyID = "AKIDOTHER" }, "credentials"},
		{"a wrong secret", func(o *S3Options) { o.SecretAccessKey = "not-the-secret" }, "credentials"},
		{"another bucket", func(o *S3Options) { o.Bucket = "other" }, "no bucket"},
		{"no prefix", func(o *S3Options) { o.Prefix = "" }, ""},
	}
	server := newServer(t)
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			store := server.store(t, tc.change)
			if err := store.Check(t.Context()); kind(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Errorf("Check: got %v, want %q", err, tc.want)
			}
			if err := store.Put(t.Context(), "a", strings.NewReader("")); kind(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Errorf("Put: got %v, want %q", err, tc.want)
			}
		})
	}
	if err := server.store(t, func(o *S3Options) { o.Region = "us-west-2" }).Check(t.Context()); err == nil || kind(err) != "" ||
		!strings.Contains(err.Error(), "AuthorizationHeaderMalformed") {
		t.Errorf("another region: %v", err)
	}
}

func TestOptions(t *testing.T) {
	const endpoint = "the endpoint is invalid: must be like https://s3.example.com:9000, without path and credentials"
	tests := []struct {
		reason string
		change func(o *S3Options)
		want   string
	}{
		{"no scheme", func(o *S3Options) { o.Endpoint = "s3.example.com" }, endpoint},
		{"another scheme", func(o *S3Options) { o.Endpoint = "file:///etc" }, endpoint},
		{"a path", func(o *S3Options) { o.Endpoint = "https://s3.example.com/backups" }, endpoint},
		{"a password in the URL", func(o *S3Options) { o.Endpoint = "https://me:hunter2@s3.example.com" }, endpoint},
		{"a query", func(o *S3Options) { o.Endpoint = "https://s3.example.com?a=b" }, endpoint},
		{"what is no URL", func(o *S3Options) { o.Endpoint = "https://\x7f" }, endpoint},
		{"no secret", func(o *S3Options) { o.SecretAccessKey = "" }, "the access key ID and the secret access key must be set"},
		{"a prefix that is no key", func(o *S3Options) { o.Prefix = "../other" }, `the prefix "../other" is invalid`},
		{"a name that no bucket can have", func(o *S3Options) { o.Bucket = "A/b" }, `the bucket "A/b" is invalid: Bucket name contains invalid characters`},
		{"a CA bundle without certificates", func(o *S3Options) { o.CABundle = []byte("x") }, "the CA bundle has no certificate as PEM"},
	}
	server := newServer(t)
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			options := server.options()
			tc.change(&options)
			if _, err := NewS3(options); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestResponses lets the service fail. The message of each response has the secret and control characters, and is long.
func TestResponses(t *testing.T) {
	tests := []struct {
		code   string
		status int
		want   string
	}{
		{"AccessDenied", 403, "credentials"},
		{"ExpiredToken", 400, "credentials"},
		{"Other", 401, "credentials"},
		{"NoSuchBucket", 404, "no bucket"},
		{"NoSuchKey", 404, "not found"},
		{"XMinioStorageFull", 507, "full"},
		{"Other", 507, "full"},
		{"QuotaExceeded", 403, "full"},
		{"SlowDown", 503, "unreachable"},
		{"Other", 500, "unreachable"},
		{"Other", 429, "unreachable"},
		{"InvalidRequest", 400, ""},
	}
	server := newServer(t)
	store := server.store(t, nil)
	for _, tc := range tests {
		t.Run(fmt.Sprint(tc.status, tc.code), func(t *testing.T) {
			server.set(func(w http.ResponseWriter, _ *http.Request) bool {
				refuse(w, tc.status, tc.code, "key "+secretKey+"\n"+strings.Repeat("x", 5000))
				return true
			})
			_, getErr := store.Get(t.Context(), "a")
			for name, err := range map[string]error{
				"Put": store.Put(t.Context(), "a", strings.NewReader("")), "Get": getErr, "Check": store.Check(t.Context()),
				"a large Put": store.Put(t.Context(), "a", io.LimitReader(zeros{}, partSize+1)),
			} {
				if err == nil || kind(err) != tc.want {
					t.Errorf("%s: got %v, want %q", name, err, tc.want)
				} else if text := err.Error(); len(text) > 500 || strings.Contains(text, secretKey) || strings.Contains(text, "\n") {
					t.Errorf("%s: got %s", name, text)
				}
			}
			if err := store.Delete(t.Context(), "a"); (err == nil) != (tc.want == "not found") || (err != nil && kind(err) != tc.want) {
				t.Errorf("Delete: got %v, want %q", err, tc.want)
			}
		})
	}
}

// zeros is endless content.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestFailedParts fails requests in the middle of an upload, which must be aborted, also after its context has ended.
func TestFailedParts(t *testing.T) {
	server := newServer(t)
	store := server.store(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	tests := []struct {
		reason string
		fault  func(w http.ResponseWriter, r *http.Request) bool
		want   string
	}{
		{"no space for the second part", func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("partNumber") != "2" {
				return false
			}
			refuse(w, 507, "XMinioStorageFull", "full")
			return true
		}, "full"},
		{"credentials that expire before the end", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !r.URL.Query().Has("uploadId") {
				return false
			}
			refuse(w, 403, "ExpiredToken", "expired")
			return true
		}, "credentials"},
		{"an error in a response with status 200", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !r.URL.Query().Has("uploadId") {
				return false
			}
			refuse(w, 200, "InternalError", "later")
			return true
		}, "unreachable"},
		{"a context that ends with the second part", func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("partNumber") == "2" {
				_, _ = io.Copy(io.Discard, r.Body) // only then a server notices that the client has gone
				cancel()
				<-r.Context().Done()
			}
			return false
		}, ""},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			server.set(tc.fault)
			err := store.Put(ctx, "a", io.LimitReader(zeros{}, partSize+1))
			if err == nil || kind(err) != tc.want || (tc.want == "" && !errors.Is(err, context.Canceled)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			server.set(nil)
			if all := keys(t, store, ""); len(all) > 0 {
				t.Errorf("objects: %q", all)
			}
			for upload := range store.client.ListIncompleteUploads(t.Context(), bucket, "", true) {
				if upload.Key != "" {
					t.Errorf("left: %+v", upload)
				}
			}
		})
	}
}

func TestClean(t *testing.T) {
	server := newServer(t)
	store, other := server.store(t, nil), server.store(t, func(o *S3Options) { o.Prefix = "fleet/us" })
	for _, s := range []*S3{store, other} {
		if _, err := s.client.NewMultipartUpload(t.Context(), bucket, s.object("a"), minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	left := func() []string {
		var all []string
		for upload := range store.client.ListIncompleteUploads(t.Context(), bucket, "", true) {
			all = append(all, upload.Key)
		}
		return all
	}
	if err := store.Clean(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fleet/eu/a", "fleet/us/a"}, left()); diff != "" {
		t.Errorf("recent uploads: %s", diff)
	}
	if err := store.Clean(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fleet/us/a"}, left()); diff != "" {
		t.Errorf("old uploads, those of others stay: %s", diff)
	}
}

func TestURL(t *testing.T) {
	server := newServer(t)
	store := server.store(t, nil)
	put(t, store, "ns/a", "content")
	address, err := store.URL(t.Context(), "ns/a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(address, secretKey) || !strings.Contains(address, "X-Amz-Expires=3600") {
		t.Errorf("got %s", address)
	}
	for change, want := range map[string]int{"": http.StatusOK, "0": http.StatusForbidden} {
		response, err := http.Get(address + change)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want || (want == http.StatusOK && string(body) != "content") {
			t.Errorf("%d: %s", response.StatusCode, body)
		}
	}
	hosted := server.store(t, func(o *S3Options) {
		o.Endpoint, o.ForcePathStyle, o.SessionToken = "https://s3.example.com:9000", false, "a-session"
	})
	address, err = hosted.URL(t.Context(), "ns/a", time.Hour)
	if err != nil || !strings.HasPrefix(address, "https://"+bucket+".s3.example.com:9000/fleet/eu/ns/a?") ||
		!strings.Contains(address, "X-Amz-Security-Token=a-session") {
		t.Errorf("with the bucket in the host name, and temporary credentials: %s, %v", address, err)
	}
	for _, lifetime := range []time.Duration{0, -time.Hour, 8 * 24 * time.Hour} {
		if _, err := store.URL(t.Context(), "a", lifetime); err == nil || !strings.HasPrefix(err.Error(), "invalid lifetime") {
			t.Errorf("%s: %v", lifetime, err)
		}
	}
}

// TestNoProgress talks to services that accept connections, and stop at some point.
func TestNoProgress(t *testing.T) {
	server := newServer(t)
	stopped := make(chan struct{})
	t.Cleanup(func() { close(stopped) })
	hang := func(http.ResponseWriter, *http.Request) bool { <-stopped; return true }
	tests := []struct {
		reason string
		fault  func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"a service that never responds", hang},
		{"a service that stops within the content", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || r.URL.RawQuery != "" {
				return hang(w, r)
			}
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
			return hang(w, r)
		}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			server.set(tc.fault)
			store := server.store(t, func(o *S3Options) { o.Idle = 50 * time.Millisecond })
			content, err := store.Get(t.Context(), "a")
			if err == nil {
				_, err = io.ReadAll(content)
				content.Close()
			}
			if kind(err) != "unreachable" {
				t.Errorf("Get: %v", err)
			}
			if err := store.Put(t.Context(), "a", strings.NewReader("x")); kind(err) != "unreachable" {
				t.Errorf("Put: %v", err)
			}
		})
	}
	t.Run("a socket that accepts nothing", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		for _, scheme := range []string{"http://", "https://"} {
			store := server.store(t, func(o *S3Options) { o.Endpoint, o.Idle = scheme+listener.Addr().String(), 50*time.Millisecond })
			if err := store.Check(t.Context()); kind(err) != "unreachable" {
				t.Errorf("%s: %v", scheme, err)
			}
		}
	})
	t.Run("nothing listens", func(t *testing.T) {
		gone := httptest.NewServer(nil)
		gone.Close()
		err := server.store(t, func(o *S3Options) { o.Endpoint = gone.URL }).Check(t.Context())
		if kind(err) != "unreachable" || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
	})
}

func TestRedirects(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	server := newServer(t)
	for _, status := range []int{301, 302, 307, 308} {
		server.set(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, status)
			return true
		})
		store := server.store(t, nil)
		_, getErr := store.Get(t.Context(), "a")
		for _, err := range []error{getErr, store.Put(t.Context(), "a", strings.NewReader("x")), store.Check(t.Context())} {
			if err == nil || asked {
				t.Errorf("%d: followed %t, %v", status, asked, err)
			}
		}
	}
}

func TestCABundle(t *testing.T) {
	server := newServer(t)
	secure := httptest.NewUnstartedServer(server)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // It reports clients that do not trust it.
	secure.StartTLS()
	defer secure.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	trusting := server.store(t, func(o *S3Options) { o.Endpoint, o.CABundle = secure.URL, bundle })
	if err := trusting.Check(t.Context()); err != nil {
		t.Error(err)
	}
	put(t, trusting, "a", strings.Repeat("x", partSize+1))
	err := server.store(t, func(o *S3Options) { o.Endpoint = secure.URL }).Check(t.Context())
	if kind(err) != "unreachable" || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("without the CA: %v", err)
	}
}

// TestLargeResponse lets the service send an endless list.
func TestLargeResponse(t *testing.T) {
	server := newServer(t)
	server.set(func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, "<ListBucketResult><Name>")
		for n := 0; n < 4*maxResponse; n += 1 << 20 {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
				return true
			}
		}
		return true
	})
	if err := server.store(t, nil).List(t.Context(), "", func(Entry) error { return nil }); err == nil {
		t.Error("an endless list is accepted")
	}
}

// TestMemory uploads and downloads 64 MiB. The service keeps nothing.
func TestMemory(t *testing.T) {
	const size, most = 64 << 20, 12 << 20
	server := newServer(t)
	server.set(func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			_, _ = io.Copy(w, io.LimitReader(zeros{}, size))
		case r.URL.Query().Has("uploads"):
			_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
		case r.Method == http.MethodPost:
			_, _ = io.WriteString(w, "<CompleteMultipartUploadResult><Bucket>b</Bucket><ETag>1</ETag></CompleteMultipartUploadResult>")
		default:
			w.Header().Set("ETag", "1")
		}
		return true
	})
	store := server.store(t, nil)
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before, used, read := heap(), int64(0), 0
	measure := readerFunc(func(p []byte) (int, error) {
		if read%(8<<20) == 0 {
			used = max(used, heap()-before)
		}
		n := min(len(p), 1<<20)
		read += n
		return n, nil
	})
	if err := store.Put(t.Context(), "a", io.LimitReader(measure, size)); err != nil {
		t.Fatal(err)
	}
	t.Logf("Put: %d KiB", used>>10)
	content, err := store.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	for range size >> 23 {
		if _, err := io.CopyN(io.Discard, content, 8<<20); err != nil {
			t.Fatal(err)
		}
		used = max(used, heap()-before)
	}
	t.Logf("both: %d KiB", used>>10)
	if used > most {
		t.Errorf("%d bytes of memory are in use, want at most %d", used, most)
	}
	if parts := len(server.seen("PUT")); parts != size/partSize {
		t.Errorf("%d parts", parts)
	}
}

// TestRetries lets the service be busy for one request.
func TestRetries(t *testing.T) {
	server := newServer(t)
	store := server.store(t, func(o *S3Options) { o.attempts = 0 })
	busy := true
	server.set(func(w http.ResponseWriter, _ *http.Request) bool {
		if !busy {
			return false
		}
		busy = false
		refuse(w, 503, "SlowDown", "busy")
		return true
	})
	put(t, store, "a", "content")
	if got := string(get(t, store, "a")); got != "content" {
		t.Errorf("got %q", got)
	}
}
