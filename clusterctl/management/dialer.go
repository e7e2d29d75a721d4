package management

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/portforward"
)

// Forward connects to a port of a Pod.
type Forward func(ctx context.Context, pod types.NamespacedName, port int) (net.Conn, error)

// Dialer connects to Services by forwarding a port of one of their Pods through the API server, like kubectl port-forward. It requires
// permission to get the Service, list Pods, and create pods/portforward.
type Dialer struct {
	reader  client.Reader
	forward Forward
}

// newDialer returns a Dialer. The reader reads Services and Pods.
func newDialer(reader client.Reader, forward Forward) *Dialer {
	return &Dialer{reader: reader, forward: forward}
}

// NewDialer returns a Dialer that forwards ports through the API server in config. The reader reads Services and Pods.
func NewDialer(reader client.Reader, config *rest.Config) (*Dialer, error) {
	forwarding, err := portforward.New(config, nil)
	if err != nil {
		return nil, err
	}
	return newDialer(reader, forwarding.Dial), nil
}

// DialContext connects to an address. If its host is the name of a Service, as <name>.<namespace>.svc, it connects to the first Pod of
// the Service that is ready; otherwise to the network.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	service, ok := naming.ParseService(host)
	if !ok {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the port of %s must be a number", address)
	}
	pod, target, err := d.find(ctx, service, int32(number))
	if err != nil {
		return nil, err
	}
	return d.forward(ctx, pod, target)
}

// find returns a Pod that a port of a Service leads to, and its port.
func (d *Dialer) find(ctx context.Context, key types.NamespacedName, number int32) (pod types.NamespacedName, port int, err error) {
	service := &corev1.Service{}
	if err := d.reader.Get(ctx, key, service); err != nil {
		return pod, 0, fmt.Errorf("reading Service %s: %w", key, err)
	}
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number })
	switch {
	case at < 0:
		return pod, 0, fmt.Errorf("Service %s has no port %d", key, number)
	case len(service.Spec.Selector) == 0:
		return pod, 0, fmt.Errorf("Service %s has no selector: only Services with Pods can be reached through the API server", key)
	}
	pods := &corev1.PodList{}
	selector := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(service.Spec.Selector)}
	if err := d.reader.List(ctx, pods, client.InNamespace(key.Namespace), selector); err != nil {
		return pod, 0, fmt.Errorf("listing the Pods of Service %s: %w", key, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range pods.Items {
		p := &pods.Items[i]
		if target, found := portOf(p, &service.Spec.Ports[at]); found && ready(p) {
			return client.ObjectKeyFromObject(p), target, nil
		}
	}
	return pod, 0, fmt.Errorf("none of the %d Pods of Service %s is ready and has its port %d", len(pods.Items), key, number)
}

// portOf returns the port of a Pod that a port of a Service leads to.
func portOf(pod *corev1.Pod, port *corev1.ServicePort) (number int, found bool) {
	target := port.TargetPort
	if target.StrVal == "" {
		if target.IntVal == 0 {
			return int(port.Port), true
		}
		return int(target.IntVal), true
	}
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == target.StrVal && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP) {
				return int(p.ContainerPort), true
			}
		}
	}
	return 0, false
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
