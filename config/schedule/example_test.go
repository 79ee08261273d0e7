package schedule_test

import (
	"fmt"
	"time"

	"github.com/solotick/solotick/config/schedule"
)

func Example() {
	s, err := schedule.Parse("30 2 * * *", schedule.Options{TimeZone: "Europe/Berlin", Job: "send-invoices"})
	if err != nil {
		fmt.Println(err)
		return
	}
	berlin, _ := time.LoadLocation("Europe/Berlin")
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, berlin)
	for range 3 { // the clocks go forward on the 29th, at two
		at = s.Next(at)
		fmt.Println(at.In(berlin).Format("Mon 02 Jan 15:04"))
	}
	// Output:
	// Sat 28 Mar 02:30
	// Sun 29 Mar 03:30
	// Mon 30 Mar 02:30
}

func ExampleParse_error() {
	_, err := schedule.Parse("61 * * * *", schedule.Options{})
	fmt.Println(err)
	// Output: minute "61": 61 is out of range: allowed are 0-59
}
