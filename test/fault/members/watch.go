package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

const (
	// tick is how often etcd is asked when nothing changes, pace how often at most.
	tick = time.Second
	pace = 100 * time.Millisecond
	// answerTime is how long a member may take.
	answerTime = 2 * time.Second
)

// Options say what is watched.
type Options struct {
	// Recorder has what the management cluster knows of the Cluster.
	Recorder *history.Recorder
	// Namespace and Cluster name the Cluster.
	Namespace, Cluster string
	// Exists asks the API server itself whether a machine's infrastructure is there.
	Exists func(ctx context.Context, machine string) (bool, error)
}

// Watcher takes samples until it is stopped.
type Watcher struct {
	options Options
	stop    context.CancelFunc
	done    chan struct{}

	samples []Sample
	conns   map[string]*grpc.ClientConn
	owner   string // of the connections: the cluster's kubeconfig
}

// Watch begins to take samples.
func Watch(ctx context.Context, o Options) *Watcher {
	ctx, stop := context.WithCancel(ctx)
	w := &Watcher{options: o, stop: stop, done: make(chan struct{}), conns: map[string]*grpc.ClientConn{}}
	go w.run(ctx)
	return w
}

// Stop takes a last sample and returns all of them, in order. Stopping twice is stopping once.
func (w *Watcher) Stop() []Sample {
	w.stop()
	<-w.done
	return w.samples
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	defer w.disconnect()
	for ctx.Err() == nil {
		now, changed := w.options.Recorder.Now(w.options.Namespace)
		if s, err := w.ask(ctx, now); err == nil {
			w.samples = append(w.samples, s)
		}
		wait(ctx, nil, pace)
		wait(ctx, changed, tick)
	}
	now, _ := w.options.Recorder.Now(w.options.Namespace)
	if s, err := w.ask(context.WithoutCancel(ctx), now); err == nil {
		w.samples = append(w.samples, s)
	}
}

// wait returns when something has changed, after a while, or when the context ends.
func wait(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-time.After(d):
	}
}

// ask asks the first machine that answers.
func (w *Watcher) ask(ctx context.Context, now history.State) (Sample, error) {
	machines := controlPlane(now)
	if err := w.prepare(now); err != nil {
		return Sample{}, err
	}
	for _, machine := range machines {
		s, err := w.askOne(ctx, now, machine)
		if err != nil {
			continue
		}
		s.Over = over(now)
		if slices.ContainsFunc(s.Members, func(member string) bool { return !slices.Contains(machines, member) }) {
			return w.confirm(ctx, now, s)
		}
		return s, nil
	}
	return Sample{}, errors.New("no member answers")
}

// confirm finds the members whose machines are gone. The record may be late with what is new, so the API server is asked;
// and a member may have left while it was, so it has to be one still.
func (w *Watcher) confirm(ctx context.Context, now history.State, first Sample) (Sample, error) {
	var gone []string
	for _, member := range first.Members {
		if exists, err := w.options.Exists(ctx, member); err == nil && !exists {
			gone = append(gone, member)
		}
	}
	second, err := w.askOne(ctx, now, first.Asked)
	if err != nil {
		return first, nil // What was said is still true, and says nothing of those that are gone.
	}
	second.Over = first.Over
	second.Gone = slices.DeleteFunc(gone, func(member string) bool { return !slices.Contains(second.Members, member) })
	return second, nil
}

// controlPlane are the names of the machines of the control plane whose infrastructure exists.
func controlPlane(now history.State) []string {
	var names []string
	for _, m := range now.Of("Machine") {
		_, is := m.GetLabels()[clusterv1.MachineControlPlaneLabel]
		if is && now[history.Key{Kind: "InMemoryMachine", Name: m.GetName()}] != nil {
			names = append(names, m.GetName())
		}
	}
	return names
}

// over tells whether the whole control plane goes.
func over(now history.State) bool {
	for _, k := range now.Of("KubeadmControlPlane") {
		return k.GetDeletionTimestamp() != nil
	}
	return true
}

func (w *Watcher) askOne(ctx context.Context, now history.State, machine string) (Sample, error) {
	conn, err := w.connection(now, machine)
	if err != nil {
		return Sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := etcdserverpb.NewClusterClient(conn).MemberList(ctx, &etcdserverpb.MemberListRequest{})
	if err != nil {
		_ = conn.Close() // It may be another machine's by now.
		delete(w.conns, machine)
		return Sample{}, err
	}
	s := Sample{At: time.Now(), Asked: machine, ClusterID: answer.GetHeader().GetClusterId()}
	for _, m := range answer.GetMembers() {
		s.Members = append(s.Members, m.GetName())
	}
	slices.Sort(s.Members)
	return s, nil
}

// prepare drops the connections to a cluster that another one has taken the place of.
func (w *Watcher) prepare(now history.State) error {
	kubeconfig, err := secret(now, pki.SecretName(w.options.Cluster, pki.Kubeconfig), pki.KubeconfigKey)
	if err != nil {
		return err
	}
	if w.owner != string(kubeconfig) {
		w.disconnect()
		w.owner = string(kubeconfig)
	}
	return nil
}

func (w *Watcher) disconnect() {
	for machine, conn := range w.conns {
		_ = conn.Close() // It is not needed any more.
		delete(w.conns, machine)
	}
}

func (w *Watcher) connection(now history.State, machine string) (*grpc.ClientConn, error) {
	if conn := w.conns[machine]; conn != nil {
		return conn, nil
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(w.owner))
	if err != nil {
		return nil, err
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	identity, err := w.identity(now, machine)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///etcd-"+machine, grpc.WithTransportCredentials(credentials.NewTLS(identity)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", host.Host)
		}))
	if err != nil {
		return nil, err
	}
	w.conns[machine] = conn
	return conn, nil
}

// identity is a client certificate of etcd's own authority.
func (w *Watcher) identity(now history.State, machine string) (*tls.Config, error) {
	name := pki.SecretName(w.options.Cluster, pki.EtcdCA)
	certificate, err := secret(now, name, pki.CertificateKey)
	if err != nil {
		return nil, err
	}
	key, err := secret(now, name, pki.PrivateKeyKey)
	if err != nil {
		return nil, err
	}
	authority, err := pki.ParseCA(certificate, key)
	if err != nil {
		return nil, err
	}
	pair, err := authority.Issue(pki.Request{CommonName: "fault", Validity: time.Hour}, time.Now())
	if err != nil {
		return nil, err
	}
	client, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "etcd-" + machine, RootCAs: roots, Certificates: []tls.Certificate{client}}, nil
}

func secret(now history.State, name, key string) ([]byte, error) {
	o := now[history.Key{Kind: "Secret", Name: name}]
	if o == nil {
		return nil, fmt.Errorf("there is no Secret %s", name)
	}
	text, _, _ := unstructured.NestedString(o.Object, "data", key)
	return base64.StdEncoding.DecodeString(text)
}
