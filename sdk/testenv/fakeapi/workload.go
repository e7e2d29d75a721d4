package fakeapi

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Workload is a workload cluster in memory. In place of remote.Clusters, it connects controllers to it.
type Workload struct {
	// Client is the client of users and of kubelets.
	Client client.Client
	// Cache is what controllers read without remote.Cluster.Live.
	Cache *View
	// Err is the error of connections, such as remote.ErrNotConnected. Nil: controllers are connected.
	Err error
	Faults
	// Requests are the requests of controllers, including reads, such as "list Node".
	Requests []string

	s      *Server
	direct client.WithWatch
}

// NewWorkload returns a workload cluster. Writes of controllers to it are also recorded in s.Writes.
func (s *Server) NewWorkload(t testing.TB, objects ...client.Object) *Workload {
	t.Helper()
	nodes := remote.Nodes()
	o := Options{Objects: objects}
	for field, values := range nodes.Indexes {
		o.Indexes = append(o.Indexes, step.Index{Object: nodes.Object, Field: field, Values: values})
	}
	in := New(t, o)
	return &Workload{Client: in.direct, Cache: in.NewCache(), s: s, direct: in.direct}
}

// Get returns a connection, for any Cluster, or Err.
func (w *Workload) Get(context.Context, types.NamespacedName) (*remote.Cluster, error) {
	if w.Err != nil {
		return nil, w.Err
	}
	live := interceptor.NewClient(w.direct, reading(&w.Faults, w.note, w.direct, false))
	return &remote.Cluster{Client: w.ForController(), Live: live, Config: &rest.Config{}}, nil
}

// ForController returns the client of connections.
func (w *Workload) ForController() client.Client {
	funcs, reads := writing(&w.Faults, w.note), reading(&w.Faults, w.note, w.Cache, true)
	funcs.Get, funcs.List = reads.Get, reads.List
	return interceptor.NewClient(w.direct, funcs)
}

// note records a request.
func (w *Workload) note(r Request) {
	w.s.note(r)
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.Requests = append(w.Requests, r.String())
}
