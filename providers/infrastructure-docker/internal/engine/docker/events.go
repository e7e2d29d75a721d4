package docker

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// overlap is how far back a stream of events starts. Docker answers the request before it subscribes to events; what happens in
// between would be lost otherwise.
const overlap = 10 * time.Second

// Events implements engine.Engine.
func (d *Docker) Events(ctx context.Context, labels map[string]string, started func(), f func(engine.Event)) error {
	const attempt = "cannot read events of containers"
	err := d.within(ctx, shortTimeout, attempt, func(ctx context.Context) error {
		_, err := d.api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
		return err
	})
	if err != nil {
		return err
	}
	// Labels are not among the filters: Podman's filter cannot match any value of a label.
	filters := client.Filters{}.Add("type", string(events.ContainerEventType))
	for action := range actions() {
		filters.Add("event", string(action))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opening := time.AfterFunc(shortTimeout, cancel)
	since := strconv.FormatInt(time.Now().Add(-overlap).Unix(), 10)
	stream := d.api.Events(ctx, client.EventsListOptions{Since: since, Filters: filters})
	if !opening.Stop() {
		return d.classify(attempt, &timeoutError{host: d.host, limit: shortTimeout})
	}
	started()
	for {
		select {
		case m := <-stream.Messages:
			if action, known := actions()[m.Action]; known && m.Type == events.ContainerEventType && has(m.Actor.Attributes, labels) {
				f(engine.Event{Action: action, Name: m.Actor.Attributes["name"], ID: m.Actor.ID, Labels: m.Actor.Attributes})
			}
		case err := <-stream.Err:
			if err == nil || errors.Is(err, io.EOF) {
				err = errors.New("the container runtime closed the stream")
			}
			return d.classify(attempt, err)
		}
	}
}

// has reports whether a container with these attributes has labels; an empty value matches any.
func has(attributes, labels map[string]string) bool {
	for key, value := range labels {
		if got, ok := attributes[key]; !ok || value != "" && got != value {
			return false
		}
	}
	return true
}

// actions are the events to read. Podman has names of its own for two of them.
func actions() map[events.Action]engine.Action {
	return map[events.Action]engine.Action{
		events.ActionStart: engine.Started,
		events.ActionDie:   engine.Died, "died": engine.Died,
		events.ActionDestroy: engine.Destroyed, "remove": engine.Destroyed,
		events.ActionPause: engine.Paused, events.ActionUnPause: engine.Resumed,
	}
}
