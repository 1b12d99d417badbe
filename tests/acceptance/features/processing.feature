Feature: Processing tasks
  The same on every store, with the settings that other processors have.

  Background:
    Given a store with these settings
      | processor_interval  | PT0.2S |
      | batch_size          | 5      |
      | stale_claim_timeout | PT30S  |

  Scenario: A created task is processed
    Given 1 processor
    When a task is created
    Then the task is completed within 10 seconds
    And its result is kept
    And it was started 1 time

  Scenario: A failing task stays, with its error, its count and a time to run again
    Given a retry_delay of PT10M
    And 1 processor
    When a task is created that fails 1 time
    Then the task is retrying within 10 seconds
    And its error is "ValueError: failure 1"
    And it counts 1 attempt
    And its run_at is 600 seconds after the failure

  Scenario: A failed task runs again when it is due
    Given a retry_delay of PT1S
    And 1 processor
    When a task is created that fails 2 times
    Then the task is completed within 15 seconds
    And it was started 3 times
    And each start but the first came 1 second after the failure before it, or later

  Scenario: Three processors share a hundred tasks
    Given 100 tasks that wait
    When 3 processors start
    Then every task is completed within 60 seconds
    And every task was started exactly once
