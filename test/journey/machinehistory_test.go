package journey

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// machineHistory counts what happens to the Machines of a namespace, from the storage: no change is missed, and nothing has to convert
// objects, also while no manager runs.
type machineHistory struct {
	mu       sync.Mutex
	machines map[string]storedMachine
	seen     int64 // the last revision
	created  []string
	least    int // the smallest number of control plane Machines that serve
}

// storedMachine is what all versions of a Machine have.
type storedMachine struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		NodeRef *struct{} `json:"nodeRef"`
	} `json:"status"`
}

// serves reports whether a control plane Machine may have a member of etcd, and is not being deleted.
func (m storedMachine) serves() bool {
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	return controlPlane && m.DeletionTimestamp == nil && m.Status.NodeRef != nil
}

// follow counts until the test ends.
func (s *stored) follow(namespace string) *machineHistory {
	s.t.Helper()
	ctx, prefix := s.t.Context(), machinesOf(namespace)
	first, err := s.Etcd.Get(ctx, prefix, clientv3.WithPrefix())
	testenv.Must(s.t, err)
	h := &machineHistory{machines: map[string]storedMachine{}}
	for _, kv := range first.Kvs {
		testenv.Must(s.t, h.set(string(kv.Key), kv.Value))
	}
	h.created, h.least, h.seen = nil, h.serving(), first.Header.Revision
	watch := s.Etcd.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(first.Header.Revision+1))
	go h.record(ctx, watch)
	return h
}

func machinesOf(namespace string) string {
	return "/registry/cluster.x-k8s.io/machines/" + namespace + "/"
}

func (h *machineHistory) record(ctx context.Context, watch clientv3.WatchChan) {
	for r := range watch {
		h.mu.Lock()
		for _, e := range r.Events {
			if e.Type == clientv3.EventTypeDelete {
				delete(h.machines, string(e.Kv.Key))
			} else if err := h.set(string(e.Kv.Key), e.Kv.Value); err != nil {
				h.created = append(h.created, fmt.Sprintf("%s, which cannot be read: %v", e.Kv.Key, err))
			}
			h.least = min(h.least, h.serving())
			h.seen = e.Kv.ModRevision
		}
		h.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
	}
}

func (h *machineHistory) set(key string, content []byte) error {
	m := storedMachine{}
	if err := json.Unmarshal(content, &m); err != nil {
		return err
	}
	if _, ok := h.machines[key]; !ok {
		h.created = append(h.created, m.Name)
	}
	h.machines[key] = m
	return nil
}

func (h *machineHistory) serving() int {
	n := 0
	for _, m := range h.machines {
		if m.serves() {
			n++
		}
	}
	return n
}

// check returns an error unless so many Machines were created, and at least so many of the control plane have served all the time. It waits
// for the last write to those that exist.
func (h *machineHistory) check(s *stored, namespace string, created, least int) error {
	now, err := s.Etcd.Get(s.t.Context(), machinesOf(namespace), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kv := range now.Kvs {
		if kv.ModRevision > h.seen {
			return fmt.Errorf("revision %d of %s is not seen yet", kv.ModRevision, kv.Key)
		}
	}
	if len(h.created) != created {
		return fmt.Errorf("%d Machines were created, want %d: %v", len(h.created), created, h.created)
	}
	if h.least < least {
		return fmt.Errorf("only %d Machines of the control plane served at some time, want at least %d", h.least, least)
	}
	return nil
}
