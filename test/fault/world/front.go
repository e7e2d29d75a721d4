package world

import (
	"context"
	"io"
	"net"
	"strconv"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Admission is the verb of what API servers ask the webhooks of managers, which faults can select.
const Admission = "admit"

// front is the port that leads to the webhook server of the first replica that can answer, as a Service does.
type front struct {
	calls    request.Kind
	stage    *script.Stage
	replicas []*manager
}

// open opens the port.
func (f *front) open(ctx context.Context) (port int, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go f.connect(ctx, conn)
		}
	}()
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port, nil
}

// connect passes a connection on until it ends, or until the webhooks cannot be reached. A connection that comes then gets no
// answer, or is closed.
func (f *front) connect(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	views := f.stage.Views()
	if how, remaining := views.Blocked(f.calls, ""); how != "" {
		if how != script.Unreachable {
			select {
			case <-ctx.Done():
			case <-views.Changed():
			case <-time.After(remaining):
			}
		}
		return
	}
	go func() {
		for ctx.Err() == nil {
			changed := views.Changed()
			if how, _ := views.Blocked(f.calls, ""); how != "" {
				cancel()
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}()
	for _, m := range f.replicas {
		if !m.serves() {
			continue
		}
		to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(m.WebhookPort))) //nolint:noctx // This host answers at once.
		if err != nil {
			continue
		}
		defer func() { _ = to.Close() }()
		go func() {
			_, _ = io.Copy(to, conn) // Either side may end first.
			_ = to.Close()
		}()
		_, _ = io.Copy(conn, to)
		return
	}
}
