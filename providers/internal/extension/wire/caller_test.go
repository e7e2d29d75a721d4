package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

const kindless = `{"status":"Success"}`

// beforeCreate returns a call of handler h with a timeout.
func beforeCreate(timeout time.Duration) wire.Call {
	return wire.Call{
		Hook:    runtimecatalog.GroupVersionHook{Group: "hooks.runtime.cluster.x-k8s.io", Version: "v1alpha1", Hook: "BeforeClusterCreate"},
		Handler: "h", Timeout: timeout,
	}
}

func caller(dial wire.DialFunc) (*wire.Caller, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	return wire.NewCaller(wire.Options{UserAgent: "test", Metrics: registry, Dial: dial, Clock: clock.RealClock{}}), registry
}

func endpoint(t *testing.T, config runtimev1.ClientConfig) wire.Endpoint {
	t.Helper()
	e, err := wire.EndpointOf(config)
	testenv.Must(t, err)
	return e
}

// refuse returns a server that does not exist.
func refuse(t *testing.T) runtimev1.ClientConfig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	testenv.Must(t, l.Close())
	return runtimev1.ClientConfig{URL: "https://" + l.Addr().String()}
}

func TestServers(t *testing.T) {
	serve := func(o extensiontest.Options, handler http.HandlerFunc) func(*testing.T) runtimev1.ClientConfig {
		return func(t *testing.T) runtimev1.ClientConfig { return extensiontest.Serve(t, o, handler).Config() }
	}
	answering := func(code int, text string) func(*testing.T) runtimev1.ClientConfig {
		return serve(extensiontest.Options{}, extensiontest.Answer(code, text))
	}
	const kind = `"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateResponse"`
	for _, tc := range []struct {
		reason string
		server func(*testing.T) runtimev1.ClientConfig
		want   string
	}{
		{reason: "a response", server: answering(200, `{`+kind+`,"status":"Success","message":"","retryAfterSeconds":0}`)},
		{reason: "a Failure is a response", server: answering(200, `{`+kind+`,"status":"Failure"}`)},
		{reason: "without kind", server: answering(200, kindless)},
		{reason: "without status, like handlers that do not set it", server: answering(200, `{`+kind+`}`)},
		{reason: "unknown fields are of newer servers", server: answering(200, `{`+kind+`,"status":"Success","new":1}`)},
		{reason: "nothing that is a response", server: answering(200, `{}`), want: "the response has neither a kind nor a status"},
		{reason: "another kind", server: answering(200, strings.ReplaceAll(`{`+kind+`}`, "BeforeClusterCreate", "Discovery")),
			want: "the response must be of kind BeforeClusterCreateResponse, version hooks.runtime.cluster.x-k8s.io/v1alpha1"},
		{reason: "another version", server: answering(200, strings.ReplaceAll(`{`+kind+`}`, "v1alpha1", "v9")),
			want: "the response must be of kind BeforeClusterCreateResponse, version hooks.runtime.cluster.x-k8s.io/v1alpha1"},
		{reason: "a kind that never ends", server: answering(200, `{"apiVersion":"v1","kind":"`+strings.Repeat("k", 1<<20)+`"}`),
			want: "the response must be of kind BeforeClusterCreateResponse, version hooks.runtime.cluster.x-k8s.io/v1alpha1"},
		{reason: "another status", server: answering(200, `{`+kind+`,"status":"Maybe"}`), want: "the status of the response must be Success or Failure"},
		{reason: "a negative retry", server: answering(200, `{`+kind+`,"retryAfterSeconds":-1}`), want: "retryAfterSeconds of the response must not be negative"},
		{reason: "rubbish", server: answering(200, `<html>secret</html>`), want: "the response is not a BeforeClusterCreateResponse in JSON"},
		{reason: "another type", server: answering(200, `{"retryAfterSeconds":"secret"}`), want: "the response is not a BeforeClusterCreateResponse in JSON"},
		{reason: "nothing", server: answering(200, ``), want: "the response is not a BeforeClusterCreateResponse in JSON"},
		{reason: "not found", server: answering(404, "secret"), want: "the server answered 404 Not Found"},
		{reason: "a success with another code", server: answering(202, kindless), want: "the server answered 202 Accepted"},
		{reason: "an unknown code", server: answering(599, "secret"), want: "the server answered 599"},
		{reason: "a redirect is not followed", want: "the server answered 307 Temporary Redirect", server: func(t *testing.T) runtimev1.ClientConfig {
			other := extensiontest.Serve(t, extensiontest.Options{}, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
			return extensiontest.Serve(t, extensiontest.Options{}, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			}).Config()
		}},
		{reason: "a huge response", want: "the response is larger than 20 MiB",
			server: serve(extensiontest.Options{}, func(w http.ResponseWriter, r *http.Request) {
				part := []byte(strings.Repeat(" ", 1<<20))
				for r.Context().Err() == nil {
					if _, err := w.Write(part); err != nil {
						return
					}
				}
			})},
		{reason: "huge headers", want: "the connection to the server failed",
			server: serve(extensiontest.Options{}, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })},
		{reason: "the server panics", want: "the connection to the server failed",
			server: serve(extensiontest.Options{}, func(http.ResponseWriter, *http.Request) { panic("secret") })},
		{reason: "the response hangs", server: serve(extensiontest.Options{}, extensiontest.Hang()), want: "the server did not respond in time"},
		{reason: "the response hangs in the middle", want: "the server did not respond in time",
			server: serve(extensiontest.Options{}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write([]byte(`{`))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})},
		{reason: "nothing listens", server: refuse, want: "the server refused the connection"},
		{reason: "no TLS", server: plain, want: "the server does not use TLS"},
		{reason: "an unknown CA", want: "the certificate of the server is not signed by a CA of spec.clientConfig.caBundle", server: func(t *testing.T) runtimev1.ClientConfig {
			config := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Hang()).Config()
			config.CABundle = extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Hang()).CA
			return config
		}},
		{reason: "the CAs of the host do not know it", want: "the certificate of the server is not signed by a CA of spec.clientConfig.caBundle", server: func(t *testing.T) runtimev1.ClientConfig {
			config := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Hang()).Config()
			config.CABundle = nil
			return config
		}},
		{reason: "a certificate for another host", server: serve(extensiontest.Options{Host: "other"}, extensiontest.Hang()),
			want: "the certificate of the server is not valid for its host name"},
		{reason: "an expired certificate", server: serve(extensiontest.Options{Now: time.Now().Add(-48 * time.Hour)}, extensiontest.Hang()),
			want: "the certificate of the server has expired, or is not yet valid"},
		{reason: "a host that does not exist", want: "the host name of the server cannot be resolved", server: func(*testing.T) runtimev1.ClientConfig {
			return runtimev1.ClientConfig{URL: "https://extension.invalid"}
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			c, _ := caller(nil)
			to, timeout := endpoint(t, tc.server(t)), 10*time.Second
			if strings.Contains(tc.want, "in time") {
				timeout = 100 * time.Millisecond
			}
			err := c.Post(t.Context(), to, beforeCreate(timeout), &runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{})
			if got := text(err); got != tc.want {
				t.Fatalf("got %q, want %q (%s)", got, tc.want, detail(err))
			}
			if d := detail(err); strings.Contains(d, "secret") || len(d) > 500 {
				t.Errorf("the log would quote the response: %d bytes, %.500s", len(d), d)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func detail(err error) string {
	var failed *wire.Error
	if !errors.As(err, &failed) {
		return fmt.Sprintf("not a failed call: %v", err)
	}
	return failed.Detail()
}

// plain returns a server without TLS.
func plain(t *testing.T) runtimev1.ClientConfig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	server := &http.Server{Handler: extensiontest.Answer(200, kindless), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return runtimev1.ClientConfig{URL: "https://" + l.Addr().String()}
}

func TestRequest(t *testing.T) {
	s := extensiontest.Serve(t, extensiontest.Options{Host: "svc.ns.svc"}, extensiontest.Answer(200, kindless))
	c, _ := caller(s.Dial)
	to := endpoint(t, runtimev1.ClientConfig{
		Service: runtimev1.ServiceReference{Namespace: "ns", Name: "svc", Path: "/base/", Port: ptr.To[int32](8443)}, CABundle: s.CA,
	})
	request := &runtimehooksv1.BeforeClusterCreateRequest{}
	request.Settings = map[string]string{"a": "b"}
	for _, timeout := range []time.Duration{10 * time.Second, 0} {
		testenv.Must(t, c.Post(t.Context(), to, beforeCreate(timeout), request, &runtimehooksv1.BeforeClusterCreateResponse{}))
	}
	calls := s.Calls()
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	const path = "/base/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/h"
	want := [2][2]string{{path, "timeout=10s"}, {path, ""}}
	if got := [2][2]string{{calls[0].Path, calls[0].Query}, {calls[1].Path, calls[1].Query}}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	headers := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"test"}}
	calls[0].Header.Del("Content-Length")
	if diff := cmp.Diff(headers, calls[0].Header); diff != "" {
		t.Errorf("headers: -want +got:\n%s", diff)
	}
	if body := calls[0].Body; !strings.Contains(body, `"settings":{"a":"b"}`) {
		t.Errorf("the body is %s", body)
	}
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections for 2 calls", n)
	}
}

func TestMetrics(t *testing.T) {
	s := extensiontest.Serve(t, extensiontest.Options{Host: "svc.ns.svc"}, extensiontest.Answers(map[string]any{
		"beforeclustercreate/h": map[string]any{"status": "Failure"}, "beforeclustercreate/i": map[string]any{"status": "Success"},
	}))
	c, registry := caller(s.Dial)
	service := runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "ns", Name: "svc"}, CABundle: s.CA}
	to, distrusted := endpoint(t, service), service
	distrusted.CABundle = nil
	for _, handler := range []string{"h", "i", "missing"} {
		call := beforeCreate(time.Minute)
		call.Handler = handler
		_ = c.Post(t.Context(), to, call, &runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{})
	}
	_ = c.Post(t.Context(), endpoint(t, distrusted), beforeCreate(time.Minute), &runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{})
	gathered, err := registry.Gather()
	testenv.Must(t, err)
	got := map[string]int{}
	for _, family := range gathered {
		for _, m := range family.GetMetric() {
			line := family.GetName()
			for _, l := range m.GetLabel() {
				line += " " + l.GetName() + "=" + l.GetValue()
			}
			got[line] += int(m.GetCounter().GetValue()) + int(m.GetHistogram().GetSampleCount())
		}
	}
	const labels = " group=hooks.runtime.cluster.x-k8s.io hook=BeforeClusterCreate host=svc.ns.svc"
	want := map[string]int{"capi_runtime_sdk_request_duration_seconds" + labels + " version=v1alpha1": 4}
	for _, call := range [][2]string{{"200", "Failure"}, {"200", "Success"}, {"404", "Unknown"}, {"<error>", "Unknown"}} {
		want["capi_runtime_sdk_requests_total code="+call[0]+labels+" status="+call[1]+" version=v1alpha1"] = 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCanceled(t *testing.T) {
	c, _ := caller(nil)
	ctx, cancel := context.WithCancel(t.Context())
	s := extensiontest.Serve(t, extensiontest.Options{}, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	err := c.Post(ctx, endpoint(t, s.Config()), beforeCreate(0), &runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{})
	if text(err) != "the call was canceled" {
		t.Error(err)
	}
}

func TestEndpointOf(t *testing.T) {
	service := func(path string) runtimev1.ServiceReference {
		return runtimev1.ServiceReference{Namespace: "ns", Name: "svc", Path: path}
	}
	key, err := extensiontest.Key()
	testenv.Must(t, err)
	for _, tc := range []struct {
		reason string
		config runtimev1.ClientConfig
		want   string
	}{
		{"nothing", runtimev1.ClientConfig{}, "spec.clientConfig must have a url or a service"},
		{"http", runtimev1.ClientConfig{URL: "http://e"}, "spec.clientConfig.url must be a URL with scheme https and a host"},
		{"a password is not quoted", runtimev1.ClientConfig{URL: "https://user:secret@e:port"}, "spec.clientConfig.url must be a URL with scheme https and a host"},
		{"not a path", runtimev1.ClientConfig{Service: service("%zz")}, "spec.clientConfig.service.path is not a path"},
		{"not a certificate", runtimev1.ClientConfig{Service: service("/"), CABundle: []byte("secret")}, "spec.clientConfig.caBundle has no certificate in PEM"},
		{"a key", runtimev1.ClientConfig{Service: service("/"), CABundle: key}, "spec.clientConfig.caBundle must have only certificates, in PEM"},
		{"an invalid certificate", runtimev1.ClientConfig{Service: service("/"), CABundle: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
			"spec.clientConfig.caBundle has an invalid certificate"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if _, err := wire.EndpointOf(tc.config); text(err) != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestProxy is about connections if the environment has a proxy: it does not know the names of Services.
func TestProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
	for address, config := range map[string]runtimev1.ClientConfig{
		"x.n.svc:443":    {Service: runtimev1.ServiceReference{Namespace: "n", Name: "x"}},
		"127.0.0.1:3128": {URL: "https://extension.example"},
	} {
		var dialed []string
		c, _ := caller(func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			return nil, errors.New("no network")
		})
		if err := c.Post(t.Context(), endpoint(t, config), beforeCreate(0), &runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{}); err == nil {
			t.Error("a call without a connection succeeds")
		}
		if diff := cmp.Diff([]string{address}, dialed); diff != "" {
			t.Errorf("connections (-want +got):\n%s", diff)
		}
	}
}
