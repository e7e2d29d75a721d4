package remote

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/clock"
)

// errClosed is why a connection of Dial has ended.
var errClosed = errors.New("the connection was closed")

// Dial connects to a workload cluster for one task, apart from the connections of Clusters: nothing is cached, whatever
// Options.Cached says, and nothing is sent before the first request. Close the Cluster after use. Errors do not quote the kubeconfig.
func Dial(ctx context.Context, kubeconfig []byte, o Options) (*Cluster, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.dial == nil {
		o.dial = o.Policy.guarded().DialContext
	}
	o.Cached, o.pool = nil, &pool{}
	o.known, o.codecs = knownKinds(o.Scheme), serializer.NewCodecFactory(o.Scheme)
	return dial(ctx, kubeconfig, o)
}

// Close ends a connection of Dial.
func (c *Cluster) Close() { c.end(errClosed) }
