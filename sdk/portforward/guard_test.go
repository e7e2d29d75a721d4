package portforward

import (
	"io"
	"net/url"
	"strings"
	"testing"

	"k8s.io/streaming/pkg/httpstream"
)

// closing is a connection for streams that can only be closed.
type closing struct {
	httpstream.Connection
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

type rubbish struct{}

func (rubbish) Read([]byte) (int, error) { panic("rubbish") }

// A panic on another goroutine must only end the connection.
func TestPanicsEndOneConnection(t *testing.T) {
	streams := &closing{}
	c := &conn{streams: streams, to: "etcd-a:2379"}
	c.listen(rubbish{})
	if err := c.explain(io.EOF); !streams.closed || err == nil || !strings.Contains(err.Error(), "panicked: string") {
		t.Errorf("closed %t, error %v", streams.closed, err)
	}
	broken := &Dialer{} // without a configuration
	if _, err := broken.guardedSPDY(t.Context(), &url.URL{}); err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("guardedSPDY(): %v", err)
	}
}
