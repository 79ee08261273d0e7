package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
)

// ErrNoData is wrapped by the error of a Data that Redis does not have any more: the run has ended, or a day is over.
var ErrNoData = errors.New("they are gone from Redis")

// ErrBadData is wrapped by the error of a Data that no trigger would have kept: another client wrote them to Redis.
var ErrBadData = errors.New("they were changed in Redis, and are not as a trigger keeps them")

// Data reads the data that the trigger with that id brought for its run. The error never quotes them.
func (s *Store) Data(ctx context.Context, id string) (string, error) {
	reply, err := s.redis.Do(ctx, "get", s.redis.Keys.Data(id))
	text, _ := reply.(string)
	if errors.Is(err, redis.Nil) {
		err = ErrNoData
	}
	if err == nil {
		if _, bad := CheckData("data", []byte(text)); bad != nil {
			err = ErrBadData
		}
	}
	if err != nil {
		return "", fmt.Errorf("reading the data of trigger %s: %w", id, err)
	}
	return text, nil
}

// ForgetData removes the data of a trigger whose run has ended. Redis forgets them by itself within a day.
func (s *Store) ForgetData(ctx context.Context, id string) error {
	if _, err := s.redis.Do(ctx, "del", s.redis.Keys.Data(id)); err != nil {
		return fmt.Errorf("removing the data of trigger %s: %w", id, err)
	}
	return nil
}

// CheckData returns the data of a trigger without the blanks around them. They must be JSON in UTF-8, of at most
// config.MaxData bytes with these blanks. field is their name as the caller knows it. The error never quotes them.
func CheckData(field string, data []byte) ([]byte, error) {
	switch {
	case len(data) > config.MaxData:
		return nil, refuse(Invalid, "%s is larger than %d KiB", field, config.MaxData>>10).
			hint("put the data where the job can fetch them, and send their address")
	case !json.Valid(data) || !utf8.Valid(data):
		return nil, refuse(Invalid, "%s is not valid JSON in UTF-8", field).hint(`as {"customer": 42}`)
	}
	return bytes.Trim(data, " \t\r\n"), nil
}

// TakesData refuses data for a job whose table does not let a trigger bring any.
func TakesData(j config.Job) error {
	switch {
	case j.HTTP == nil && j.Exec == nil: // only its name is known
		return refuse(Partial, "it is not known here whether job %q takes data", j.Name).hint("give its table with -c")
	case !j.Trigger.Data:
		return refuse(NoData, "job %q takes no data", j.Name).hint("give the job trigger: {data: true}")
	}
	return nil
}
