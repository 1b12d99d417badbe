"""English words about tasks that exist already."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Words

UPDATES: Final[Words] = {
    "op": {
        "pause|suspend|hold|hold off|hold off on|hold off with|put on hold|put on ice|halt|freeze|"
        "snooze|mute|stop temporarily|temporarily stop|take a break from|take a break with|silence|"
        "disable|turn off|switch off|deactivate|shelve|pausing|suspending|hold back|"
        "i need a break from|need a break from|a break from": "pause",
        "resume|unpause|un-pause|continue|continue with|restart|reactivate|re-enable|enable|unmute|"
        "turn on|turn back on|switch on|switch back on|activate|start again|bring back|reinstate|"
        "pick up again|carry on|carry on with|go on with|keep going|keep going with|unfreeze|"
        "unsuspend|proceed with|start up again|resuming|take off hold|get going again|"
        "get back to": "resume",
        "cancel|delete|remove|stop|end|kill|drop|get rid of|scrap|discard|quit|abort|"
        "call off|stop sending me|stop sending|stop reminding me about|stop reminding me of|"
        "stop doing|terminate|forget|forget about|i no longer need|no longer need|i don't need|"
        "i do not need|don't need|no more|erase|unschedule|ditch|stop running|"
        "stop reminding me to|never mind about|stop with|don't send me|don't remind me about|"
        "don't remind me of|don't remind me to|don't remind me|do not remind me to|"
        "do not remind me about|stop bothering me about|stop bothering me with|stop reminding me|"
        "i don't want|i do not want|don't want|do away with|bin|throw out|throw away|clear|wipe|"
        "can go|may go|can be deleted|can be removed|can be cancelled|can be canceled|can be dropped|"
        "is no longer needed|no longer needed|no longer necessary|is obsolete|not needed|"
        "no need for|there's no need for|there is no need for|is not needed|isn't needed|not necessary|isn't necessary|deleting|cancelling|canceling|"
        "removing|no longer want|i no longer want|trash|axe|take off my list|i'm done with": "cancel",
        "run|execute|trigger|fire|fire off|launch|kick off|do|start|running|force": "run_now",
        "skip|leave out|omit|miss|don't run|do not run|don't send|do not send|leaving out|skipping|"
        "can be skipped|pass on|ignore|be skipped|can be left out|don't do": "skip",
        "rename|retitle|call|name|title|relabel|renaming": "rename",
        "reschedule|bump|move|change|add|include|shift|push|postpone|put off|delay|push back|bring forward|"
        "make|set|update|adjust|switch|defer|put back|move up|pull forward|modify|edit|"
        "reset|alter|swap|move back|push out|convert|turn|put|bring|pull|moving|changing|shifting|"
        "pushing|postponing|rescheduling|limit|restrict|can wait|adapt|let's make|correct": "reschedule",
        "deliver|send|email|mail|push to|text|route|notify me of|notify me about|"
        "only send|only deliver|only email|just send|just email|also send|also deliver|"
        "also email|stop emailing me|don't email me|stop emailing|just deliver|notify me|"
        "also notify me|use|forward": "deliver",
    },
    "op_split": {
        "turn|switch": {
            "off": "pause", "back on": "resume", "on again": "resume", "on": "resume",
            "back off": "pause",
        },
        "put": {"off": "reschedule", "back on": "resume", "on again": "resume"},
        "leave": {"out": "skip"},
        "take": {"off": "skip", "out": "skip", "off my list": "cancel", "off hold": "resume",
                 "off the list": "cancel"},
        "kick|fire": {"off": "run_now"},
        "let": {"rest": "pause", "sleep": "pause"},
        "give": {"a miss": "skip", "a break": "pause", "a rest": "pause"},
        "bring": {"back": "resume"},
        "start": {"again": "resume", "up again": "resume", "back up": "resume"},
        "get": {"going again": "resume", "back": "resume"},
        "pick|wake": {"up again": "resume", "back up": "resume"},
        "throw": {"out": "cancel", "away": "cancel"},
        "call": {"off": "cancel"},
        "want": {"back": "resume", "back on": "resume"},
        "i want|i'd like": {"back": "resume", "back on": "resume"},
    },
    "op_now": {
        "now|right now|immediately|right away|at once|straight away|once now|one more time|"
        "an extra time|one extra time|this instant|again now|asap|as soon as possible|once more|"
        "once more now|this minute|right this minute|one more time now|without delay": 1,
    },
    "all": {
        "all|everything|all of them|all tasks|all my tasks|all reminders|all my reminders|"
        "every task|all of my tasks|all of my reminders|every one of them|all schedules|"
        "all my schedules|them all|every reminder|the lot|all the tasks|all the reminders|"
        "all of it|all jobs|all my jobs|everything i have|all of these|all of those|"
        "all my scheduled tasks|all scheduled tasks|my tasks|my reminders|each task|any of them|"
        "any of it|all of my jobs|the whole lot|every single task|every single reminder": 1,
    },
    "pronoun": {
        "it|that|this|that one|this one|the task|the reminder|that task|this task|that reminder|"
        "this reminder|the one|the job|that job|this job|the schedule|this schedule|"
        "that schedule|my reminder|my task|the alert|the same one|the alarm|the run|"
        "the recurring task|the notification|them|the time|its time|the thing|its|it's called|that one's|it's|"
        "its schedule": 1,
    },
    "points_at": {
        "that one|this one|the task|the reminder|that task|this task|that reminder|this reminder|"
        "the same one|that schedule|this schedule|that job|this job|that one's": 1,
    },
    "generic": {
        "task|tasks|reminder|reminders|thing|one|job|alert|alerts|schedule|notification|"
        "notifications|run|runs|item|entry|alarm|stuff|job|series|event|message|messages|"
        "email|emails|update|the|my|our|a|an|of|for|to|on|about|that|which|with|and|in|"
        "recurring|scheduled|daily|weekly|monthly|existing|sending|me|from|at|by|so|time|"
        "please|now|just|instead|back|until|next|this|upcoming|called|named|titled|its|times|"
        "one's|task's|reminder's|ones": 1,
    },
    "next_run": {
        "the next run|next run|the next one|the next occurrence|next occurrence|the next time|"
        "next time|the coming run|the upcoming run|the upcoming one|the next execution|"
        "the next instance|once|the next|just once|one run|the next reminder|upcoming one|"
        "the coming one|the very next one|the following one|next one|just this once|this once|"
        "the next scheduled run|the next round|coming one|the one coming up|upcoming run": 1,
    },
    "op_mid": {
        "should be|should run|should go out|should come|would be better|is better|works better|"
        "i meant|i mean|needs to be|ought to be|should happen|should start|should arrive|"
        "would work better|is better for me|works better for me|should|must|must be|has to|"
        "has to be|have to be|needs to|ought to|should now|should only|suits me better|suits me|"
        "would suit me better|would suit me|i'd prefer|i would prefer|i prefer|would prefer|"
        "let's say|let's do|how about|what about|is now|are now|has been moved to|is moved to|"
        "has moved to|moved to|was moved to|has to run|should be sent|should get sent|"
        "should be delivered|would be nicer|would be good|would be best|better at|better on|"
        "i'd rather have|rather have|i'd rather|has been moved": "reschedule",
    },
    "hold_words": {
        "on hold|on pause|on ice|paused|suspended|a break|a rest|to rest|on the back burner": 1,
    },
    "back_on": {
        "back on|on again|off hold|going again|up and running|up again|up and running again": 1,
    },
    "again": {"again": 1},
    "for_now": {
        "for now|for the time being|for the moment|for a while|for a bit|temporarily|"
        "until further notice|till further notice|until i say so|for the present": 1,
    },
    "for_good": {"for good|completely|forever|permanently|altogether|entirely|for ever": 1},
    "turn_off": {"off": 1},
    "not": {"than|not|instead of|rather than|no longer|and not|not just|not only": 1},
    "negative": {
        "no|not|don't|do not|without|isn't|is not|no longer|not on|but not|but not on|never|"
        "doesn't need to|need not|skip|except|but": 1,
    },
    "enough": {
        "is enough|is fine|is plenty|will do|would do|would be enough|will be enough|"
        "would be fine|suffices|is sufficient|are enough|is okay|is ok|enough|plenty|works for me|"
        "would suffice|will suffice|is all i need|is good enough|are fine": 1,
    },
    "one_word": {"one": 1},
    "rename_noun": {
        "title|name|its title|its name|the title|the name|the title of|the name of|"
        "new title|new name|a new name|a new title|the new title|the new name": 1,
    },
    "called": {
        "should be called|should be named|should be titled|is called|is now called|is named|"
        "be called|be named|it's called|called|be titled|be renamed to|should be renamed to|"
        "should read": 1,
    },
    "task_noun": {
        "task|tasks|reminder|reminders|job|jobs|alert|alerts|schedule|notification|alarm|"
        "schedules|alarms|notifications": 1,
    },
    "aside": {
        "even though|even if|though|although|whether or not|while i|while we|while i'm|while we're|i'm|i am|i'll|i will|i've|i have|i had|i|because|since|as|it's|it is|we're|we are|we|"
        "we'll|we've|she's|he's|they're|they|he|she|there's|there is|no need|too|that's|that is|"
        "the boss|cause|cos|'cause|don't wait|i can't|i won't|i don't|so i|so that i|they've|"
        "it was|that was|due to|thanks to|my|i need|i already|we already|the meeting|our": 1,
    },
    "reason": {"even though|even if|although|whether or not|because|since|as|while i'm|while we're|while i|while we|cause|cos|'cause|due to|so that": 1},
    "says_is": {"is|was|are|isn't|wasn't|has|had": 1},
    "too_much": {
        "is too early|is too late|is too soon|was too early|was too late|is wrong|was wrong|"
        "doesn't work|does not work|no longer works|is no good|is not good|isn't good|too early|"
        "too late|too soon": 1,
    },
    "same": {
        "of those months|of these months|of the same months|same time|at the same time|the same time|same hour|same day|on the same day|"
        "the same day|same days|same place|otherwise the same|as before|as usual": 1,
    },
    "filler": {
        "actually|anymore|any more|any longer|for now|for good|altogether|completely|entirely|"
        "can we|could we|let's|let us|would|better|it's|i'd rather|maybe|perhaps|rather|instead of|"
        "forever|again|permanently|temporarily|for me|be|should|will|not|no|to|sending|back|up|"
        "out|there|of course|want|wanted|i|we|hmm|oh|wait|sorry|as well|too|over|delivery|"
        "deliveries|channel|channels|via|through|using|by|in|on|as|from|only|exactly|once|"
        "time|start time|days|day|s|anyway|on second thought|on second thoughts|scratch that|"
        "change of plan|change of plans|correction|oops|hang on|hold on|wait a second|nope|"
        "yes|yeah|yep|i changed my mind|i've changed my mind|never mind|for the time being|"
        "for the moment|for a while|for a bit|that's wrong|no that's wrong|times|ah|er|um|uh|"
        "that is|otherwise": 1,
    },
    "small": {
        "i have|i've got|i've set up|that i have|of mine|you have for me|me|my|we|you|can|could|can you|could you|may|might|have|has|let|get|gets|"
        "want|need|need to|like|do|does|run|runs|go|goes|come|comes|start|starts|happen|happens|"
        "send|sent|arrive|arrives|is|are|was|that's|so|then|just|really|very|ahead|go ahead|"
        "go ahead and|alright|well|right|with|how|what|too early|too late|too soon|wrong|new|still|"
        "even|already|at all|so it|so that it|delivered|i'd|i'd like|i would like|"
        "would you mind|kindly|now|plus|but|for|about|use|using|give|take|leave|make|keep|"
        "don't|do not|stop|without|enough|needed|longer|if possible|if you can|soon|it so|every|"
        "runs at|my list|list|off|off my list|ok|okay|sharp|more|extra|each|also|been|since|"
        "i need|i want|i want to|let me|let me have|give me|get me|send me|show me|i'd like to|"
        "i would like to|please|tell me|or|am|any|remind me|reminding me|receive|keep doing|don't wait|"
        "the rest|rest|everyone|yet|of|by mail only|goes to|its|itself|schedule|miss|whole": 1,
    },
    "by_amount": {"by": 1},
    "via": {"by|via|through|using|as|per|no": 1},
    "defers": {
        "postpone|delay|push back|push|put off|defer|bring forward|move up|move back|can wait|"
        "push out|pull forward|postponing|pushing": 1,
    },
    "forward": {"bring forward|move up|pull forward|forward|up": 1},
    "backward": {"back|out|off": 1},
    "instead": {"instead|now on|from now on|rather|going forward|in future|in the future|henceforth": 1},
    "rename_to": {"to|as|into|:": 1},
    "later_by": {"later": 1, "earlier|sooner|forward|ahead|early": -1},
    "channel": {
        "also email|only email|just email|stop emailing me|don't email me|stop emailing|email|e-mail|mail|my email|my inbox|emails|e-mails|emailing|inbox by mail|by mail|my mail": "EMAIL",
        "web|the web|web inbox|the web inbox|browser|website|web app|the website|the browser|"
        "dashboard|the dashboard|in-app|the app inbox|desktop|online": "WEB",
        "mobile|phone|my phone|push|push notification|push notifications|mobile push|my mobile|"
        "the phone|smartphone|cell|cell phone|mobile app|the mobile app|my cell|handset|"
        "a push notification|mobile notification|mobile notifications|my smartphone|"
        "my cell phone|my mobile phone|mobile phone": "MOBILE",
    },
    "no_more": {"stop emailing me|don't email me|stop emailing": 1},
    "other_channel": {
        "sms|slack|whatsapp|telegram|teams|discord|fax|pager|signal|text message|twitter": 1,
    },
    "all_channels": {
        "everywhere|all channels|every channel|anywhere|everything but|everything except|"
        "everywhere except|everywhere but": 1,
    },
    "only": {"just once|only once|only send|only deliver|only email|just send|just email|just deliver|only|just|exclusively|solely|nothing but": 1},
    "add_channel": {"also send|also deliver|also email|also notify me|also|too|as well|in addition|additionally|add|plus": 1},
    "remove_channel": {
        "don't|do not|stop|no longer|not|never|no|without|remove|except|stop sending|don't send|"
        "drop|leave out|instead of|rather than|not on|but not|stop emailing me|don't email me|"
        "stop emailing|no more|everything but|everything except|everywhere except|but not on|"
        "everywhere but|apart from|i don't want|don't want|i don't need|don't send me|and not|"
        "stop sending me": 1,
    },
}  # fmt: skip
