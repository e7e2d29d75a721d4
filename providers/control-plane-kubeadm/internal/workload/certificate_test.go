package workload

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

func TestCertificateExpiry(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: system("kube-apiserver-a")}
	elsewhere := pod.DeepCopy()
	elsewhere.Spec.Containers = []corev1.Container{{Name: "kube-apiserver", LivenessProbe: &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8443)}},
	}}}
	own, foreign := newAuthority(t), newAuthority(t)
	tests := map[string]struct {
		reason  string
		objects []client.Object
		from    *pki.CA
		want    string
		wantErr string
	}{
		"Default": {reason: "The default is the port of kubeadm.", objects: []client.Object{pod}, from: own, want: "kube-system/kube-apiserver-a:6443"},
		"Port":    {reason: "The port is that of the liveness probe.", objects: []client.Object{elsewhere}, from: own, want: "kube-system/kube-apiserver-a:8443"},
		"Foreign": {reason: "A certificate of another CA is an error.", objects: []client.Object{pod}, from: foreign, wantErr: "reading the certificate of the API server on Node a: x509: certificate signed by unknown authority"},
		"NoPod":   {reason: "The Pod of the API server does not exist.", from: own, wantErr: `pods "kube-apiserver-a" not found`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ca, err := own.PEM()
			if err != nil {
				t.Fatal(err)
			}
			c, _ := newCluster(t, tc.objects...)
			c.connection = &remote.Cluster{Config: &rest.Config{Host: "https://c", TLSClientConfig: rest.TLSClientConfig{CAData: ca.Certificate}}}
			dialed := ""
			c.forward = func(_ context.Context, pod types.NamespacedName, port int) (net.Conn, error) {
				dialed = net.JoinHostPort(pod.String(), strconv.Itoa(port))
				return serve(t, tc.from), nil
			}
			got, err := c.CertificateExpiry(t.Context(), "a")
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("%s\nCertificateExpiry(): %v, want %q", tc.reason, err, tc.wantErr)
				}
				return
			}
			if err != nil || !got.Equal(start.Add(time.Hour)) || dialed != tc.want {
				t.Errorf("%s\nCertificateExpiry(): %s from %s (%v), want %s from %s", tc.reason, got, dialed, err, start.Add(time.Hour), tc.want)
			}
		})
	}
}

func newAuthority(t *testing.T) *pki.CA {
	t.Helper()
	a, err := pki.NewCA("", start)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve returns a connection to a server with a certificate that is valid for an hour.
func serve(t *testing.T, from *pki.CA) net.Conn {
	t.Helper()
	pair, err := from.Issue(pki.Request{CommonName: "kube-apiserver", DNSNames: []string{"c"}, Validity: time.Hour}, start)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		if server, err := listener.Accept(); err == nil {
			_, _ = server.Read(make([]byte, 1)) // The client reports errors.
			_ = server.Close()
		}
	}()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return near
}
