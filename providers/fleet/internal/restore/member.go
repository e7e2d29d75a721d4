package restore

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
)

// peerPort is the port of etcd for other members, in control planes of kubeadm.
const peerPort = "2380"

// member gives the only member of etcd its real address, which others join it by, and checks that it has the data of the backup.
func (c *Controller) member(ctx context.Context, s *scope) (operation.Outcome, error) {
	node, err := c.node(ctx, s)
	if err != nil {
		return operation.Outcome{}, err
	}
	control, err := c.connect(ctx, s.clusterKey())
	if err != nil {
		return operation.Outcome{}, err
	}
	defer control.Close()
	view, err := control.View(ctx, node)
	if err != nil {
		return operation.Outcome{}, err
	}
	if len(view.Members) != 1 || view.Members[0].ID != view.ID {
		return operation.Outcome{}, fmt.Errorf("etcd on Node %s has %d members, want one: it does not run the restored data",
			node, len(view.Members))
	}
	if least := s.restore.Status.Backup.Revision + bump; view.Revision < least {
		return operation.Outcome{}, fmt.Errorf("etcd on Node %s has revision %d, less than %d: it does not run the restored data",
			node, view.Revision, least)
	}
	want, err := peerURL(view.Members[0].ClientURLs)
	if err != nil {
		return operation.Outcome{}, fmt.Errorf("the etcd member on Node %s: %w", node, err)
	}
	if !slices.Equal(view.Members[0].PeerURLs, []string{want}) {
		if err := control.SetPeerURL(ctx, node, view.ID, want); err != nil {
			return operation.Outcome{}, err
		}
	}
	return operation.Done(fmt.Sprintf("etcd has one member, %s, at revision %d", node, view.Revision)), nil
}

// node returns the name of the Node of the restored Machine.
func (c *Controller) node(ctx context.Context, s *scope) (string, error) {
	m := &clusterv1.Machine{}
	key := client.ObjectKey{Namespace: s.restore.Namespace, Name: s.restore.Status.MachineName}
	if err := c.Live.Get(ctx, key, m); err != nil {
		return "", fmt.Errorf("reading Machine %s: %w", key, err)
	}
	if !m.Status.NodeRef.IsDefined() {
		return "", fmt.Errorf("Machine %s has no Node", key)
	}
	return m.Status.NodeRef.Name, nil
}

// peerURL returns the address for other members of a member that clients reach at these addresses: kubeadm uses one IP address for both.
func peerURL(clientURLs []string) (string, error) {
	for _, text := range clientURLs {
		at, err := url.Parse(text)
		if err != nil || at.Hostname() == "" {
			continue
		}
		if ip := net.ParseIP(at.Hostname()); ip == nil || !ip.IsLoopback() {
			return "https://" + net.JoinHostPort(at.Hostname(), peerPort), nil
		}
	}
	return "", fmt.Errorf("it has published no address for clients yet")
}
