package member

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/internal/etcd"
)

// View returns the state of etcd according to the member on a Node.
func (e *Etcd) View(ctx context.Context, node string) (etcd.View, error) {
	return e.members.View(ctx, node)
}

// SetPeerURL changes the address at which other members reach a member, through the member on a Node.
func (e *Etcd) SetPeerURL(ctx context.Context, node string, id uint64, url string) error {
	return e.members.SetPeerURLs(ctx, node, id, url)
}

// Workload returns a client of the workload cluster, without a cache.
func (e *Etcd) Workload() client.Client { return e.cluster.Client }

// Members returns the IDs of the members of etcd, according to the member on a Node, in hexadecimal. It fails without a quorum.
func (e *Etcd) Members(ctx context.Context, node string) ([]string, error) {
	view, err := e.View(ctx, node)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range view.Members {
		ids = append(ids, strconv.FormatUint(m.ID, 16))
	}
	return ids, nil
}

// DeleteNode deletes a Node of the workload cluster. One that does not exist is no error.
func (e *Etcd) DeleteNode(ctx context.Context, name string) error {
	err := e.Workload().Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Node %s: %w", name, err)
	}
	return nil
}
