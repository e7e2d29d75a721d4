package store

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

const (
	accessKey, secretKey = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	bucket, region       = "backups", "eu-central-1"
)

// server is an S3 service: gofakes3, which has buckets, lists, and multipart uploads, but neither credentials nor hashes. Those are
// checked in front of it, by S3's rules. versitygw has all, but imports Kafka, NATS, LDAP, Vault and the SDK of Azure, and changes the
// working directory of the process.
type server struct {
	*httptest.Server
	backend http.Handler

	mutex    sync.Mutex
	requests []string
	// fault answers a request instead of the service, if it returns true.
	fault fault
}

type fault = func(w http.ResponseWriter, r *http.Request) bool

// set sets the fault of further requests.
func (s *server) set(f fault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fault = f
}

func newServer(t *testing.T) *server {
	t.Helper()
	memory := s3mem.New()
	if err := memory.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	s := &server{backend: gofakes3.New(memory).Server()}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// options are those of a store in the bucket of the server.
func (s *server) options() S3Options {
	return S3Options{
		Endpoint: s.URL, Bucket: bucket, Region: region, ForcePathStyle: true, AccessKeyID: accessKey, SecretAccessKey: secretKey,
		Prefix: "fleet/eu", Idle: 10 * time.Second, attempts: 1, AllowLocal: true,
	}
}

func (s *server) store(t *testing.T, change func(o *S3Options)) *S3 {
	t.Helper()
	options := s.options()
	if change != nil {
		change(&options)
	}
	store, err := NewS3(options)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	fault := s.fault
	s.mutex.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if code := verify(r); code == "AuthorizationHeaderMalformed" {
		refuse(w, http.StatusBadRequest, code, "the region is wrong; expecting "+region)
		return
	} else if code != "" {
		refuse(w, http.StatusForbidden, code, "denied")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	sum := sha256.Sum256(body)
	if want := r.Header.Get("X-Amz-Content-Sha256"); r.Method == http.MethodPut && want != hex.EncodeToString(sum[:]) {
		refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch", "got "+want)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.backend.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}

// verify checks the signature of a request (AWS Signature Version 4), and returns the code of an error.
func verify(r *http.Request) string {
	query := r.URL.Query()
	credential, signed, signature := query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature")
	date, payload := query.Get("X-Amz-Date"), "UNSIGNED-PAYLOAD"
	if signature == "" {
		date, payload = r.Header.Get("X-Amz-Date"), r.Header.Get("X-Amz-Content-Sha256")
		for part := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch name {
			case "Credential":
				credential = value
			case "SignedHeaders":
				signed = value
			case "Signature":
				signature = value
			}
		}
	}
	scope := strings.Split(credential, "/")
	if len(scope) != 5 || len(date) < 8 || !strings.Contains(";"+signed+";", ";host;") {
		return "AccessDenied"
	}
	if scope[0] != accessKey {
		return "InvalidAccessKeyId"
	}
	if scope[2] != region {
		return "AuthorizationHeaderMalformed"
	}
	query.Del("X-Amz-Signature")
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + strings.ReplaceAll(query.Encode(), "+", "%20") + "\n"
	for header := range strings.SplitSeq(signed, ";") {
		value := r.Header.Get(header)
		if header == "host" {
			value = r.Host
		}
		canonical += header + ":" + strings.TrimSpace(value) + "\n"
	}
	canonical += "\n" + signed + "\n" + payload
	sum := sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + secretKey)
	for _, text := range []string{
		scope[1], scope[2], scope[3], scope[4],
		"AWS4-HMAC-SHA256\n" + date + "\n" + strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(sum[:]),
	} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		key = mac.Sum(nil)
	}
	if hex.EncodeToString(key) != signature {
		return "SignatureDoesNotMatch"
	}
	return ""
}

// seen returns the requests so far whose text contains a part.
func (s *server) seen(part string) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(r string) bool { return !strings.Contains(r, part) })
}
